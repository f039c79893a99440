/** Calls functions of the application. If one throws, the error is reported as uncaught, and the client continues. */
export declare function notify<Values extends readonly unknown[]>(listeners: Iterable<((...values: Values) => void) | undefined>, ...values: Values): void;
/** Adds a listener. Returns a function that removes it. */
export declare function listen<Listener>(listeners: Set<Listener>, listener: Listener): () => void;
