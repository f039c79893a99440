import type { Clock } from './clock.ts';
export interface CallOptions {
    /** The body, which is sent as JSON. */
    readonly body?: unknown;
    readonly headers?: Readonly<Record<string, string>>;
    readonly signal?: AbortSignal | undefined;
    /**
     * What a successful answer must contain. A different answer does not come from the service, but from a proxy or
     * gateway.
     */
    readonly expect?: 'json' | 'nothing';
    /** For the log: 1 for the first attempt, more for retries. */
    readonly attempt?: number;
}
export interface Answer<Body = unknown> {
    readonly status: number;
    readonly headers: Headers;
    /** Parsed, if it is JSON; else the text. */
    readonly body: Body;
}
/** One request, for a log. */
export interface RequestEntry {
    readonly method: string;
    /** The path with the query, without the host; the secret of a password reset is replaced by `…`. */
    readonly path: string;
    readonly url: string;
    /** `undefined` if there was no answer. */
    readonly status: number | undefined;
    /** Milliseconds since 1970. */
    readonly startedAt: number;
    readonly durationMs: number;
    /** The remaining rate limit, if the path has one. */
    readonly rateLimit: {
        readonly remaining: number;
        readonly resetSeconds: number;
    } | undefined;
    /** Seconds to wait before the next attempt, if the service said so. */
    readonly retryAfter: number | undefined;
    readonly requestId: string | undefined;
    /** The sent headers, without the token. */
    readonly headers: Readonly<Record<string, string>>;
    /** Whether a token was sent. */
    readonly authorized: boolean;
    /** The sent body, with passwords replaced by `…`. */
    readonly body: string | undefined;
    /** Whether this is the answer to an earlier request with the same key. */
    readonly replayed: boolean;
    /** 1 for the first attempt, more for retries. */
    readonly attempt: number;
}
export interface HttpOptions {
    readonly url: string;
    readonly fetch: typeof globalThis.fetch;
    readonly clock: Clock;
    readonly timeoutMs: number;
    readonly onRequest: ((entry: RequestEntry) => void) | undefined;
}
export type Send = <Body>(method: string, path: string | URL, options: CallOptions & {
    readonly token?: string | undefined;
}) => Promise<Answer<Body>>;
/**
 * Sends requests to the service, and reports each of them. A path is relative to the service. A URL must be on the same
 * host.
 */
export declare function sender({ url: base, fetch, clock, timeoutMs, onRequest }: HttpOptions): Send;
export declare function isReplay(answer: Pick<Answer, 'headers'> | undefined): boolean;
