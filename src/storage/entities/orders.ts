import type { Reach } from '../../core/access.ts'
import type { Actor } from '../../core/actor.ts'
import { type Condition, type Unmet, unconditional, unmet } from '../../core/condition.ts'
import {
  allows,
  amountOf,
  type Order,
  type OrderItem,
  type OrderListRequest,
  type StoredItem,
  type Tracking,
} from '../../core/orders/order.ts'
import type { TrackedOrder } from '../../core/store.ts'
import { revisionOf } from '../revision.ts'
import type { Dialect } from '../select/dialect.ts'
import { pagesOf } from '../select/list.ts'
import { queued, type Row, recordOf, type Statement, sql, type Value } from '../sql.ts'
import type { Steps } from '../verb.ts'
import { unlessRevoked } from './actors.ts'

export const orderVerbs = {
  createOrder: (userId: number, items: readonly OrderItem[], actor: Actor) =>
    unlessRevoked(actor, createOrder(userId, items), 'token revoked' as const),

  cancelOrder: (id: number, actor: Actor, reach: Reach, condition: Condition = unconditional) =>
    unlessRevoked(actor, cancelOrder(id, reach, condition), 'token revoked' as const),
}

function* createOrder(userId: number, items: readonly OrderItem[]): Steps<Order | 'absent'> {
  const amount = amountOf(items)
  const [row] = yield sql`insert into orders (user_id, amount_cents, created_at)
                          select id, cast(${amount * 100} as bigint), now_plus(0) from users where id = ${userId}
                          returning id, created_at`
  if (row === undefined) return 'absent'
  const id = Number(row[0])
  yield queued(itemRows(id, items))
  return { id, status: 'pending_payment', amount, createdAt: String(row[1]), userId }
}

function* cancelOrder(id: number, reach: Reach, condition: Condition): Steps<'gone' | 'already shipped' | Unmet> {
  const order = yield* lockOrder(id, reach)
  if (order === undefined) return 'gone'
  const refusal = unmet(condition, () => revisionOf.order(order))
  if (refusal !== undefined) return refusal
  if (!allows(order, 'cancel')) return 'already shipped'
  yield queued(sql`delete from orders where id = ${id}`)
  return 'gone'
}

/** A shipped order has a payment and a tracking record. The tracking number contains the order id, so it is unique. */
export function ship(id: number, paymentId: number): Statement {
  return sql`update orders set status = 'shipped', payment_id = ${paymentId}, tracking_carrier = 'Difference Express',
             tracking_number = ${`DX${String(id).padStart(8, '0')}`}, shipped_at = now_plus(0)
             where id = ${id}`
}

/**
 * Reads and locks an order until the end of the transaction. So if paying and cancelling happen at the same time, the
 * second one sees the result of the first.
 */
export function* lockOrder(id: number, reach: Reach, next?: Statement): Steps<Order | undefined> {
  const lock = sql`select id, status, amount_cents, created_at, user_id from orders
                   where id = ${id} and coalesce(${ownerIn(reach)}, user_id, 0) = coalesce(user_id, 0) for update`
  const [row] = yield { ...lock, next }
  return row === undefined ? undefined : orderOf(row)
}

export const orderReads = {
  /**
   * A user's orders, or those with a status, by id. Returns no row if there is no such user, and a row of nulls if there
   * are no orders.
   */
  listOf(dialect: Pick<Dialect, 'page'>) {
    const owner = ['user_id', '$3'] as const
    const from = (listed: string) => `users left join ${listed} on listed.user_id = users.id where users.id = $3`
    const all = pagesOf(dialect, { ...orders, equal: [owner], from })
    const withStatus = pagesOf(dialect, { ...orders, equal: [['status', '$4'], owner], from })
    return (userId: number, request: OrderListRequest) =>
      request.status === undefined ? all(request, userId) : withStatus(request, userId, request.status)
  },
  /** The orders of all users, or those with a status, by id. */
  listAll(dialect: Pick<Dialect, 'page'>) {
    const all = pagesOf(dialect, orders)
    const withStatus = pagesOf(dialect, { ...orders, equal: [['status', '$3']] })
    return (request: OrderListRequest) =>
      request.status === undefined ? all(request) : withStatus(request, request.status)
  },
  byId: (id: number, reach: Reach) =>
    sql`select id, status, amount_cents, created_at, user_id, tracking_carrier, tracking_number, shipped_at from orders
        where id = ${id} and coalesce(${ownerIn(reach)}, user_id, 0) = coalesce(user_id, 0)`,
  items: (id: number, reach: Reach) =>
    sql`select order_items.id, name, quantity, price from order_items join orders on orders.id = order_id
        where order_id = ${id} and coalesce(${ownerIn(reach)}, user_id, 0) = coalesce(user_id, 0)
        order by order_items.id`,
}

const columns = ['id', 'status', 'amount_cents', 'created_at', 'user_id']
const orders = { table: 'orders', columns, shown: columns.map(column => `listed.${column}`).join(', ') }

/**
 * The value to bind in `coalesce(…, user_id, 0) = coalesce(user_id, 0)`. It is the only owner whose rows are visible,
 * or null. Null makes the condition true for every row, including rows without an owner.
 */
export function ownerIn(reach: Reach): number | null {
  return reach === 'everyone' ? null : reach
}

export function orderOf([id, status, cents, createdAt, userId]: Row): Order {
  return {
    id: Number(id),
    status: status as Order['status'],
    amount: Number(cents) / 100,
    createdAt: String(createdAt),
    userId: userId as Order['userId'],
  }
}

const trackingOf = recordOf<Omit<Tracking, 'orderId'>>('carrier', 'number', 'shippedAt')

export function trackedOrderOf(row: Row): TrackedOrder {
  const order = orderOf(row)
  return { order, tracking: row[5] === null ? null : { orderId: order.id, ...trackingOf(row.slice(5)) } }
}

export const itemOf = recordOf<StoredItem>('id', 'name', 'quantity', 'price')

function itemRows(orderId: number, items: readonly OrderItem[]): Statement {
  const values: Value[] = [orderId]
  const rows = items.map(({ name, quantity, price }) => {
    const first = values.push(name, quantity, price) - 2
    return `($1, $${first}, $${first + 1}, $${first + 2})`
  })
  return { text: `insert into order_items (order_id, name, quantity, price) values ${rows.join(', ')}`, values }
}
