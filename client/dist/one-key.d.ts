import type { Duet } from './connect.ts';
import { type Answer } from './http.ts';
import type { PaymentOptions, PaymentOutcome } from './payments.ts';
/** Sends a request with one Idempotency-Key until it has a final answer, with a limited number of attempts. */
export declare function underOneKey<Body>(duet: Duet, method: string, target: string | URL, body: object | undefined, { key, signal }?: PaymentOptions): Promise<PaymentOutcome & {
    readonly answer: Answer<Body>;
}>;
