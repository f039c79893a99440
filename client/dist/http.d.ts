import type { Clock } from './clock.ts';
export interface CallOptions {
    /** Sent as JSON. */
    readonly body?: unknown;
    readonly headers?: Readonly<Record<string, string>>;
    readonly signal?: AbortSignal | undefined;
    /** What the answer of a success must be. Another one is not from the service, but from something in between. */
    readonly expect?: 'json' | 'nothing';
    /** For the log: 1, and more for retries. */
    readonly attempt?: number;
}
export interface Answer<Body = unknown> {
    readonly status: number;
    readonly headers: Headers;
    /** Parsed, if it is JSON; else the text. */
    readonly body: Body;
}
/** One request, as a log shows it. */
export interface RequestEntry {
    readonly method: string;
    /** With the query, without the host. */
    readonly path: string;
    readonly url: string;
    /** `undefined`: no answer came. */
    readonly status: number | undefined;
    /** Milliseconds since 1970. */
    readonly startedAt: number;
    readonly durationMs: number;
    /** What is left of the rate limit, where the path has one. */
    readonly rateLimit: {
        readonly remaining: number;
        readonly resetSeconds: number;
    } | undefined;
    readonly requestId: string | undefined;
    /** What was sent, without the token. */
    readonly headers: Readonly<Record<string, string>>;
    /** Whether a token was sent. */
    readonly authorized: boolean;
    /** What was sent, with passwords replaced by `…`. */
    readonly body: string | undefined;
    /** Whether the answer is that of an earlier request with the same key. */
    readonly replayed: boolean;
    /** 1, and more for retries. */
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
/** Sends requests to the service, and reports each. A path is relative to the service, a URL must be on its host. */
export declare function sender({ url: base, fetch, clock, timeoutMs, onRequest }: HttpOptions): Send;
export declare function isReplay(answer: Pick<Answer, 'headers'> | undefined): boolean;
