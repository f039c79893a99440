/** Time and timers. Tests replace them. */
export interface Clock {
    /** Milliseconds since 1970. */
    now(): number;
    /** Calls `run` later. Returns a function that cancels it. In Node a `background` timer does not keep the process alive. */
    after(milliseconds: number, run: () => void, background?: boolean): () => void;
}
export declare const systemClock: Clock;
/** Milliseconds before the next attempt. They double each time, up to half a minute, with a random part for each client. */
export declare function backoff(failures: number): number;
