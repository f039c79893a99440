/** Calls functions of the application. If one throws, that is reported as uncaught, and the client goes on. */
export declare function notify<Values extends readonly unknown[]>(listeners: Iterable<((...values: Values) => void) | undefined>, ...values: Values): void;
/** Adds a listener. Returns the function that removes it. */
export declare function listen<Listener>(listeners: Set<Listener>, listener: Listener): () => void;
