import { type Clock } from './clock.ts';
import { type Answer, type CallOptions, type RequestEntry } from './http.ts';
import { type Session, type SessionListener, type TokenStorage } from './session.ts';
import type { SocketConstructor } from './socket.ts';
export interface ConnectOptions {
    /** The address of the service, such as `http://127.0.0.1:4000`. In a page it may be relative to the page. */
    readonly url: string | URL;
    /** Default: the global one. */
    readonly fetch?: typeof globalThis.fetch;
    /** Used by subscriptions only. Default: the global one, which browsers and Node 22 have. */
    readonly WebSocket?: SocketConstructor;
    /** Stores the token. Default: it is in memory only. */
    readonly storage?: TokenStorage;
    /** Called after each request, retries included. */
    readonly onRequest?: (entry: RequestEntry) => void;
    /** Called when the session has ended: by `signOut`, or because the service no longer accepts its token. */
    readonly onSignedOut?: (why: 'signOut' | 'ended') => void;
    /** The timeout of a request in milliseconds. Default: 30 seconds. */
    readonly timeoutMs?: number;
    /** For tests: time and timers. */
    readonly clock?: Clock;
}
export interface Credentials {
    readonly email: string;
    readonly password: string;
}
/** A connection to one service with at most one session. The functions of each area take it as their argument. */
export interface Duet {
    readonly url: string;
    /** The current session, if a user is signed in. */
    readonly session: Session | undefined;
    signIn(credentials: Credentials): Promise<Session>;
    /** Forgets the token. `everywhere`: the service ends all sessions of the user, on every device. */
    signOut(options?: {
        readonly everywhere?: boolean;
    }): Promise<void>;
    /** Calls the listener after each sign-in, renewal and end of a session. Returns a function that removes the listener. */
    onSession(listener: SessionListener): () => void;
    /**
     * Sends one request to the service, for paths that no area covers. A path is relative to the service. Rejects with a
     * `DuetError` for a status of 400 or above.
     */
    request<Body = unknown>(method: string, path: string | URL, options?: CallOptions): Promise<Answer<Body>>;
    /** Ends all subscriptions, and stops renewing the token. */
    close(): void;
}
export declare function connect(options: ConnectOptions): Duet;
