/** Time and timers, so that tests can hold them. */
export interface Clock {
    /** Milliseconds since 1970. */
    now(): number;
    /** Runs something later. Returns the function that prevents it. In Node a `background` timer does not keep the process. */
    after(milliseconds: number, run: () => void, background?: boolean): () => void;
}
export declare const systemClock: Clock;
/** Milliseconds before the next attempt: twice as many each time, up to half a minute, and each client at its own moment. */
export declare function backoff(failures: number): number;
