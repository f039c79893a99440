/** Waits for the result until the signal ends the wait. Others may wait for the same result: it is still made. */
export declare function unlessAborted<Value>(result: Promise<Value>, signal: AbortSignal | undefined): Promise<Value>;
