import type { Payment } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { keptPage, type ReadList } from './pages.ts'

/** The page of the list of payments. */
export const paymentPage = keptPage<Payment>()

/** The payment of an order, under the id of the order. */
export interface OrderPayment {
  readonly id: number
  readonly amount: number
  readonly paidAt: string
}

/**
 * What a user paid for orders, newest order first. The service lists payments of everybody, but not of one user; each
 * shipped order was paid when it was shipped.
 */
export function orderPaymentsOf(userId: number): ReadList<OrderPayment> {
  return options => ({
    async first() {
      const { items, more } = await api.orders.list(userId, { ...options, status: 'shipped', sort: '-id' }).first()
      const paid = items.map(async order => {
        const { shipped_at: paidAt } = await api.orders.follow(order, 'track')
        return { id: order.id, amount: order.amount, paidAt }
      })
      return { items: await Promise.all(paid), more }
    },
  })
}
