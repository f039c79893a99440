import { DuetError } from './errors.ts';
import type { Answer } from './http.ts';
/** The error for an answer with a status of 400 or above. */
export declare function refusal({ status, headers, body }: Answer): DuetError;
export interface GraphQLError {
    readonly message: string;
    readonly extensions?: {
        readonly code?: string;
    };
}
/** The error for a refusal, over HTTP or in a message over a socket. */
export declare function errorOf(errors: readonly GraphQLError[] | undefined, message: string, details: {
    status?: number;
    retryAfter?: number | undefined;
    requestId?: string | undefined;
    body: unknown;
}): DuetError;
export declare function retryAfterIn(answer: Pick<Answer, 'headers'> | undefined): number | undefined;
export declare function requestIdIn(answer: Pick<Answer, 'headers'> | undefined): string | undefined;
