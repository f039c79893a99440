import type { Clock } from './clock.ts';
import type { Send } from './http.ts';
/** Stores a token between visits. */
export interface TokenStorage {
    get(): string | null | undefined;
    /** `undefined` deletes it. */
    set(token: string | undefined): void;
    /** Calls the function after somebody else, such as another tab, has changed the token. */
    watch?(changed: () => void): void;
}
export interface Session {
    readonly userId: number;
    readonly role: string;
    /** When the current token expires, in milliseconds since 1970. It is renewed before. */
    readonly expiresAt: number;
}
export type SessionChange = 'signedIn' | 'renewed' | 'signedOut' | 'ended';
export type SessionListener = (session: Session | undefined, change: SessionChange) => void;
/** Keeps the token in `sessionStorage`, or in `localStorage`: then all tabs have one session. */
export declare function keepIn(storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>, name?: string): TokenStorage;
/** Holds the token, renews it in time, and detects the end of the session. */
export declare class SessionKeeper {
    #private;
    constructor(send: Send, storage: TokenStorage, clock: Clock);
    get session(): Session | undefined;
    listen(listener: SessionListener): () => void;
    signIn(credentials: object): Promise<Session>;
    signOut(everywhere: boolean): Promise<void>;
    /** The token for the next request. Rejects if the session has ended. */
    current(): Promise<string | undefined>;
    /**
     * Called after a request with this token was refused with 401. Returns another token of the same user for a second
     * attempt, if any.
     */
    afterRefusal(token: string): Promise<string | undefined>;
    close(): void;
}
