import type { Duet } from './connect.ts';
import { type PageOptions, type Pages } from './pages.ts';
import type { PaymentOptions, PaymentOutcome } from './payments.ts';
import { type Versioned } from './versions.ts';
export interface Link {
    readonly href: string;
    /** Default: GET. */
    readonly method?: string;
}
export type OrderStatus = 'pending_payment' | 'shipped';
/** An order. Its links are the actions that are possible now. */
export interface Order extends Versioned {
    readonly id: number;
    readonly status: OrderStatus;
    readonly amount: number;
    readonly created_at: string;
    /** `null` if the user is deleted. */
    readonly user_id: number | null;
    readonly links: {
        readonly self: Link;
        readonly pay?: Link;
        readonly cancel?: Link;
        readonly track?: Link;
    };
}
export interface NewItem {
    readonly name: string;
    readonly quantity: number;
    /** The price of one piece. */
    readonly price: number;
}
export interface OrderItem extends NewItem {
    readonly id: number;
}
export interface Tracking {
    readonly order_id: number;
    readonly carrier: string;
    readonly number: string;
    readonly shipped_at: string;
}
export interface PaidOrder extends PaymentOutcome {
    /** The order after the payment. */
    readonly order: Order;
    /** The payment, for `payments(duet).get`. */
    readonly payment: Link | undefined;
}
/** The result of following each link. */
export interface Followed {
    readonly self: Order;
    readonly pay: PaidOrder;
    readonly cancel: undefined;
    readonly track: Tracking;
}
export type OrderLink = keyof Followed;
export interface OrderListOptions extends PageOptions {
    readonly status?: OrderStatus;
}
export interface Orders {
    list(userId: number, options?: OrderListOptions): Pages<Order>;
    /** The orders of all users. */
    all(options?: OrderListOptions): Pages<Order>;
    create(userId: number, items: readonly NewItem[]): Promise<Order>;
    get(id: number, options?: {
        readonly signal?: AbortSignal;
    }): Promise<Order>;
    items(order: Order): Promise<readonly OrderItem[]>;
    /**
     * Follows a link of the order. Without such a link it fails with `conflict`, and no request is sent. An order from
     * `get` has an `ETag`: it is paid or cancelled only if it has not changed since, else that fails with `conflict`, too.
     */
    follow<Name extends OrderLink>(order: Order, name: Name, options?: PaymentOptions): Promise<Followed[Name]>;
}
/** The links of an order other than `self`: the actions that are possible now. */
export declare function actionsOf(order: Order): readonly Exclude<OrderLink, 'self'>[];
export declare function orders(duet: Duet): Orders;
