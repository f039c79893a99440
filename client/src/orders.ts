import type { Duet } from './connect.ts'
import { DuetError } from './errors.ts'
import { underOneKey } from './one-key.ts'
import { linkIn, type PageOptions, type Pages, pagesOf } from './pages.ts'
import type { PaymentOptions, PaymentOutcome } from './payments.ts'
import { unchanged, type Versioned, versioned } from './versions.ts'

export interface Link {
  readonly href: string
  /** Default: GET. */
  readonly method?: string
}

export type OrderStatus = 'pending_payment' | 'shipped'

/** An order. Its links are the actions that are possible now. */
export interface Order extends Versioned {
  readonly id: number
  readonly status: OrderStatus
  readonly amount: number
  readonly created_at: string
  /** `null` if the user is deleted. */
  readonly user_id: number | null
  readonly links: { readonly self: Link; readonly pay?: Link; readonly cancel?: Link; readonly track?: Link }
}

export interface NewItem {
  readonly name: string
  readonly quantity: number
  /** The price of one piece. */
  readonly price: number
}

export interface OrderItem extends NewItem {
  readonly id: number
}

export interface Tracking {
  readonly order_id: number
  readonly carrier: string
  readonly number: string
  readonly shipped_at: string
}

export interface PaidOrder extends PaymentOutcome {
  /** The order after the payment. */
  readonly order: Order
  /** The payment, for `payments(duet).get`. */
  readonly payment: Link | undefined
}

/** The result of following each link. */
export interface Followed {
  readonly self: Order
  readonly pay: PaidOrder
  readonly cancel: undefined
  readonly track: Tracking
}

export type OrderLink = keyof Followed

export interface OrderListOptions extends PageOptions {
  readonly status?: OrderStatus
}

export interface Orders {
  list(userId: number, options?: OrderListOptions): Pages<Order>
  /** The orders of all users. */
  all(options?: OrderListOptions): Pages<Order>
  create(userId: number, items: readonly NewItem[]): Promise<Order>
  get(id: number, options?: { readonly signal?: AbortSignal }): Promise<Order>
  items(order: Order): Promise<readonly OrderItem[]>
  /**
   * Follows a link of the order. Without such a link it fails with `conflict`, and no request is sent. An order from
   * `get` has an `ETag`: it is paid or cancelled only if it has not changed since, else that fails with `conflict`, too.
   */
  follow<Name extends OrderLink>(order: Order, name: Name, options?: PaymentOptions): Promise<Followed[Name]>
}

/** The links of an order other than `self`: the actions that are possible now. */
export function actionsOf(order: Order): readonly Exclude<OrderLink, 'self'>[] {
  return Object.keys(order.links).filter(name => name !== 'self') as Exclude<OrderLink, 'self'>[]
}

interface RawOrder extends Omit<Order, 'links'> {
  readonly _links: Order['links']
}

export function orders(duet: Duet): Orders {
  const readOrder = async (target: string | URL, signal: AbortSignal | undefined) => {
    const answer = await duet.request<RawOrder>('GET', target, { signal, expect: 'json' })
    return versioned(orderOf(answer.body), answer)
  }
  const read = async <Body>(target: string | URL, signal?: AbortSignal) =>
    (await duet.request<Body>('GET', target, { signal, expect: 'json' })).body
  const steps: { [Name in OrderLink]: (order: Order, link: Link, options: PaymentOptions) => Promise<Followed[Name]> } =
    {
      self: (_order, { href }, { signal }) => readOrder(new URL(href, duet.url), signal),
      track: (_order, { href }, { signal }) => read<Tracking>(new URL(href, duet.url), signal),
      async cancel(order, { href, method = 'GET' }, { signal }) {
        await duet.request(method, new URL(href, duet.url), {
          headers: unchanged(order),
          signal,
          expect: 'nothing',
        })
        return undefined
      },
      async pay(order, { href, method = 'GET' }, options) {
        const target = new URL(href, duet.url)
        const { answer, ...outcome } = await underOneKey<RawOrder>(duet, method, target, {
          ...options,
          headers: unchanged(order),
        })
        const payment = linkIn(answer.headers.get('link'), 'payment')
        return {
          order: orderOf(answer.body),
          payment: payment === undefined ? undefined : { href: payment },
          ...outcome,
        }
      },
    }
  return {
    list: (userId, options = {}) => pagesOf(duet, `/users/${userId}/orders`, options, orderOf),
    all: (options = {}) => pagesOf(duet, '/orders', options, orderOf),
    create: async (userId, items) =>
      orderOf(
        (await duet.request<RawOrder>('POST', `/users/${userId}/orders`, { body: { items }, expect: 'json' })).body,
      ),
    get: (id, { signal } = {}) => readOrder(`/orders/${id}`, signal),
    items: order => read<readonly OrderItem[]>(new URL(`${order.links.self.href}/items`, duet.url)),
    async follow(order, name, options = {}) {
      const link = order.links[name]
      if (link === undefined) throw new DuetError('conflict', `The order has no link to ${name} it.`)
      return steps[name](order, link, options)
    },
  }
}

function orderOf({ _links, ...order }: RawOrder): Order {
  return { ...order, links: _links }
}
