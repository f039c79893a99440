import type { DuetError } from './errors.ts';
export interface Watcher<Data> {
    /** Each event once and in order, also across lost connections and restarts. */
    readonly onData: (data: Data) => void;
    /**
     * Time to read the current state. `start`: events arrive from now on. `gap`: events may be missing, because the client
     * was away for longer than the service keeps events, or lost its connection before the first one; further ones follow.
     */
    readonly onReadAnew?: (why: 'start' | 'gap') => void;
    /** The subscription has ended with an error. Lost connections are no errors: they are renewed. */
    readonly onError?: (error: DuetError) => void;
    /** The subscription has ended: its post was deleted, or the connection was closed by `duet.close()`. */
    readonly onEnd?: () => void;
    /** Where to begin: the position of an earlier subscription. Default: now. */
    readonly after?: string | undefined;
}
export interface Subscription {
    /** Of the last event. */
    readonly position: string | undefined;
    close(): void;
}
/** One subscription of the application. It outlives the sockets over which its events come. */
export declare class Watch {
    #private;
    /** The id on the present socket. Each attempt has another one, so that late messages of earlier ones are not confused. */
    id: string | undefined;
    position: string | undefined;
    failures: number;
    /** Whether the application has not used the events yet that it has got. */
    isPaused: boolean;
    cancelRetry: () => void;
    constructor(query: string, variables: unknown, watcher: Watcher<never>);
    begin(id: string): object;
    /** The subscription reached the service. */
    confirm(id: string): void;
    /** No events come until it begins again, which is after the position, if there is one. */
    interrupt(): void;
    /** The service does not know the position. */
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
