import { isDuetError, type Order, type OrderItem, type OrderStatus, type Tracking } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { keptPage } from './pages.ts'

/**
 * An order as this page knows it. A cancelled order is gone from the service. The page goes on showing it, without
 * anything to do, so that its reader learns what became of it.
 */
export interface KnownOrder extends Omit<Order, 'status'> {
  readonly status: OrderStatus | 'cancelled'
}

/** The page of the list of orders. */
export const orderPage = keptPage<KnownOrder>()

export function cancelled(order: KnownOrder): KnownOrder {
  return { ...order, status: 'cancelled', links: { self: order.links.self } }
}

/** An order, or nothing if it is absent or not for this reader. */
export async function findOrder(id: number): Promise<KnownOrder | undefined> {
  try {
    return await api.orders.get(id)
  } catch (error) {
    if (isDuetError(error, 'notFound')) return undefined
    throw error
  }
}

export interface OrderContents {
  readonly items: readonly OrderItem[]
  /** Absent before it is shipped. */
  readonly tracking?: Tracking
}

/** What is in an order and where it is. Nothing, if it was cancelled meanwhile. */
export async function readContents(order: KnownOrder): Promise<OrderContents | undefined> {
  const known = order as Order
  try {
    const [items, tracking] = await Promise.all([
      api.orders.items(known),
      known.links.track && api.orders.follow(known, 'track'),
    ])
    return { items, ...(tracking && { tracking }) }
  } catch (error) {
    if (isDuetError(error, 'notFound')) return undefined
    throw error
  }
}

export interface Outcome {
  /** The order as it is now. */
  readonly order: KnownOrder
  /** What somebody else did with it, faster than this user. */
  readonly overtaken?: string
}

/** Pays an order, or cancels it. If somebody else was faster, the outcome is what the order is now. */
export async function act(order: KnownOrder, action: 'pay' | 'cancel'): Promise<Outcome> {
  const known = order as Order
  try {
    if (action === 'pay') return { order: (await api.orders.follow(known, 'pay')).order }
    await api.orders.follow(known, 'cancel')
    return { order: cancelled(order) }
  } catch (error) {
    if (!isDuetError(error, 'conflict') && !isDuetError(error, 'notFound')) throw error
    const now = (await findOrder(order.id)) ?? cancelled(order)
    return { order: now, overtaken: overtaken[now.status][action] }
  }
}

const overtaken = {
  cancelled: {
    pay: 'This order was cancelled meanwhile. Nothing is paid.',
    cancel: 'This order was cancelled already.',
  },
  shipped: {
    pay: 'This order was paid and shipped meanwhile. Nothing is paid twice.',
    cancel: 'This order was paid and shipped meanwhile. It can no longer be cancelled.',
  },
  pending_payment: {
    pay: 'This order has changed meanwhile. Nothing is paid yet. This is its present state.',
    cancel: 'This order has changed meanwhile. It is not cancelled yet. This is its present state.',
  },
} as const
