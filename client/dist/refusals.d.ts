import { DuetError } from './errors.ts';
import type { Answer } from './http.ts';
/** The error of an answer with a status from 400 on. */
export declare function refusal({ status, headers, body }: Answer): DuetError;
export interface GraphQLError {
    readonly message: string;
    readonly extensions?: {
        readonly code?: string;
    };
}
/** The error of a refusal, by HTTP or by a message over a socket. */
export declare function errorOf(errors: readonly GraphQLError[] | undefined, message: string, details: {
    status?: number;
    retryAfter?: number | undefined;
    requestId?: string | undefined;
    body: unknown;
}): DuetError;
export declare function requestIdIn(answer: Pick<Answer, 'headers'> | undefined): string | undefined;
