import type { DuetError } from './errors.ts';
export interface Watcher<Data> {
    /** Gets each event once and in order, also across lost connections and restarts. */
    readonly onData: (data: Data) => void;
    /**
     * Called when the application should read the current state. `start`: events arrive from now on. `gap`: events may be
     * missing, because the client was offline for longer than the service keeps events, or because a subscription that
     * joined an open connection lost it before its first event. Later events still arrive.
     */
    readonly onReadAnew?: (why: 'start' | 'gap') => void;
    /** The subscription has ended with an error. A lost connection is not an error: the client reconnects. */
    readonly onError?: (error: DuetError) => void;
    /** The subscription has ended: its post was deleted, or the connection was closed by `duet.close()`. */
    readonly onEnd?: () => void;
    /** The position to start after, from an earlier subscription. Default: now. */
    readonly after?: string | undefined;
}
export interface Subscription {
    /** The position of the last event. Before the first one: where the subscription began, if that is known. */
    readonly position: string | undefined;
    close(): void;
}
/** One subscription of the application. It continues over several sockets. */
export declare class Watch {
    #private;
    /** The id on the current socket. Each attempt has a new one, so that late messages of earlier attempts are ignored. */
    id: string | undefined;
    position: string | undefined;
    failures: number;
    /** Whether the application still has unused events, so that no more are requested. */
    isPaused: boolean;
    cancelRetry: () => void;
    constructor(query: string, variables: unknown, watcher: Watcher<never>);
    /** Without a position of its own it begins at `now`, and not a little later: so it can resume before its first event. */
    begin(id: string, now?: string): object;
    /** The service has received the subscription. */
    confirm(id: string): void;
    /** Stops the events until it subscribes again, after its position if it has one. */
    interrupt(): void;
    /** The service does not know the position, so it is not used again. */
    forgetPosition(): void;
    hear({ data, extensions }: {
        data: never;
        extensions?: {
            position?: string;
        };
    }): void;
    fail(error: DuetError): void;
    end(): void;
}
