/** Waits for the result until the signal ends the wait. The work goes on, because others may wait for its result. */
export declare function unlessAborted<Value>(result: Promise<Value>, signal: AbortSignal | undefined): Promise<Value>;
