import type { Duet } from './connect.ts';
import type { Link } from './orders.ts';
import { type PageOptions, type Pages } from './pages.ts';
import { type Versioned } from './versions.ts';
export interface Payment extends Versioned {
    readonly id: number;
    readonly amount: number;
    /** The order that this payment paid, if any. */
    readonly order_id: number | null;
    readonly created_at: string;
}
export interface PaymentOptions {
    /** Default: a new key. A repeated key never pays twice. */
    readonly key?: string;
    readonly signal?: AbortSignal;
}
export interface PaymentOutcome {
    /** The Idempotency-Key that was sent. */
    readonly key: string;
    /** Whether this is the answer to an earlier request with this key, of this call or another one. */
    readonly replayed: boolean;
    /** The number of requests that were sent. */
    readonly attempts: number;
}
export interface MadePayment extends PaymentOutcome {
    readonly payment: Payment;
}
/**
 * Pays. Without an answer, or after a 5xx or a 429, the request is sent again with the same key, a few times with
 * growing pauses. If it still fails, the error has the `key`.
 */
export interface Payments {
    pay(amount: number, options?: PaymentOptions): Promise<MadePayment>;
    /** All payments for an admin, and under the policy `open`; else those that the user made. */
    list(options?: PageOptions): Pages<Payment>;
    get(payment: number | Link, options?: {
        readonly signal?: AbortSignal;
    }): Promise<Payment>;
}
export declare function payments(duet: Duet): Payments;
