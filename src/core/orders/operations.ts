import { type Access, invalidToken } from '../access.ts'
import type { Actor } from '../actor.ts'
import { type Condition, type Revised, unmetCondition } from '../condition.ts'
import { AppError, present } from '../errors.ts'
import type { Decode } from '../input.ts'
import { type Page, pageOf } from '../page.ts'
import type { OrderStore } from '../store.ts'
import { absentUser } from '../users/user.ts'
import {
  allows,
  checkAmount,
  type Order,
  type OrderItem,
  type OrderListRequest,
  type StoredItem,
  type Tracking,
} from './order.ts'

export interface OrdersParts {
  readonly store: OrderStore
  readonly access: Access
}

/** All operations on orders except payment. An order that the caller may not see looks absent. */
export class Orders {
  readonly #parts: OrdersParts

  constructor(parts: OrdersParts) {
    this.#parts = parts
  }

  async listOf(
    actor: Actor,
    userId: number | undefined,
    decode: Decode<OrderListRequest>,
  ): Promise<Page<Order, OrderListRequest>> {
    this.#parts.access.require(actor, 'list orders', userId)
    const request = decode()
    const orders = userId === undefined ? 'absent' : await this.#parts.store.listOrders(userId, request)
    if (orders === 'absent') throw absentUser()
    return pageOf(orders, request)
  }

  async listAll(actor: Actor, decode: Decode<OrderListRequest>): Promise<Page<Order, OrderListRequest>> {
    this.#parts.access.require(actor, 'list all orders')
    const request = decode()
    return pageOf(await this.#parts.store.listAllOrders(request), request)
  }

  async create(actor: Actor, userId: number | undefined, decode: Decode<readonly OrderItem[]>): Promise<Order> {
    this.#parts.access.require(actor, 'create an order', userId)
    const items = decode()
    checkAmount(items)
    const outcome = userId === undefined ? 'absent' : await this.#parts.store.createOrder(userId, items, actor)
    if (outcome === 'absent') throw absentUser()
    if (outcome === 'token revoked') throw invalidToken()
    return outcome
  }

  async read(actor: Actor, id: number | undefined): Promise<Revised<Order>> {
    const reach = this.#parts.access.reach(actor, 'read an order')
    return present(id === undefined ? undefined : await this.#parts.store.readOrder(id, reach), absentOrder)
  }

  async items(actor: Actor, id: number | undefined): Promise<readonly StoredItem[]> {
    const reach = this.#parts.access.reach(actor, 'read an order')
    const items = id === undefined ? [] : await this.#parts.store.orderItems(id, reach)
    if (items.length === 0) throw absentOrder() // every order has items
    return items
  }

  async tracking(actor: Actor, id: number | undefined): Promise<Tracking> {
    const reach = this.#parts.access.reach(actor, 'read an order')
    const tracked = id === undefined ? undefined : await this.#parts.store.trackOrder(id, reach)
    const { order, tracking } = present(tracked, absentOrder)
    if (!allows(order, 'track') || tracking === null) throw new AppError('not-found', 'Order is not shipped yet')
    return tracking
  }

  async cancel(actor: Actor, id: number | undefined, decodeCondition: Decode<Condition>): Promise<void> {
    const reach = this.#parts.access.reach(actor, 'cancel an order')
    const condition = decodeCondition()
    const outcome = id === undefined ? 'gone' : await this.#parts.store.cancelOrder(id, actor, reach, condition)
    if (outcome === 'changed' || outcome === 'exists') throw unmetCondition('order', outcome)
    if (outcome === 'already shipped') throw new AppError('conflict', 'Order is already shipped')
    if (outcome === 'token revoked') throw invalidToken()
  }
}

export function absentOrder(): AppError {
  return new AppError('not-found', 'Order not found')
}
