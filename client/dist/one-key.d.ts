import type { Duet } from './connect.ts';
import { type Answer, type CallOptions } from './http.ts';
import type { PaymentOptions, PaymentOutcome } from './payments.ts';
/** Sends a request with one Idempotency-Key until it has a final answer, with a limited number of attempts. */
export declare function underOneKey<Body>(duet: Duet, method: string, target: string | URL, { key, signal, body, headers: more }: PaymentOptions & Pick<CallOptions, 'body' | 'headers'>): Promise<PaymentOutcome & {
    readonly answer: Answer<Body>;
}>;
