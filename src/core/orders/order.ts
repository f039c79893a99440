import { badInput } from '../input.ts'
import type { PageRequest } from '../page.ts'

export interface Order {
  readonly id: number
  readonly status: OrderStatus
  readonly amount: number
  readonly createdAt: string
  /** Missing if the user is deleted. */
  readonly userId: number | null
}

export interface OrderListRequest extends PageRequest {
  readonly status?: OrderStatus
}

export type OrderStatus = 'pending_payment' | 'shipped'
export type OrderAction = 'pay' | 'cancel' | 'track'

export interface OrderItem {
  readonly name: string
  readonly quantity: number
  readonly price: number
}

export interface StoredItem extends OrderItem {
  readonly id: number
}

export interface Tracking {
  readonly orderId: number
  readonly carrier: string
  readonly number: string
  readonly shippedAt: string
}

/** The actions that each status allows, in the order in which responses list them. */
export const actionsOf: Readonly<Record<OrderStatus, readonly OrderAction[]>> = {
  pending_payment: ['pay', 'cancel'],
  shipped: ['track'],
}

export const orderStatuses = Object.keys(actionsOf) as readonly OrderStatus[]

export function allows({ status }: Order, action: OrderAction): boolean {
  return actionsOf[status].includes(action)
}

export const orderBounds = Object.freeze({
  items: 100,
  name: 320,
  quantity: 10_000,
  price: 1_000_000_000,
  amount: 1_000_000_000_000,
})

/** An order must cost more than nothing, and no more than the largest possible payment. */
export function checkAmount(items: readonly OrderItem[]): void {
  const amount = amountOf(items)
  if (amount >= 1 && amount <= orderBounds.amount) return
  throw badInput(`The sum of all items must be from 1 to ${orderBounds.amount}`)
}

/** At most 100 times 10^13, which a double still represents exactly. */
export function amountOf(items: readonly OrderItem[]): number {
  return items.reduce((sum, { quantity, price }) => sum + quantity * price, 0)
}
