import type { Reach } from '../../core/access.ts'
import type { Actor } from '../../core/actor.ts'
import { unmet } from '../../core/condition.ts'
import { allows } from '../../core/orders/order.ts'
import type { PageRequest } from '../../core/page.ts'
import type { Payment } from '../../core/payments/payment.ts'
import type { Claim, OrderPurpose, Paid, PaymentRefusal, Purpose } from '../../core/store.ts'
import { revisionOf } from '../revision.ts'
import type { Dialect } from '../select/dialect.ts'
import { pagesOf } from '../select/list.ts'
import { queued, type Row, recordOf, type Statement, sql } from '../sql.ts'
import { Rollback, type Steps } from '../verb.ts'
import { idOf, unlessRevoked } from './actors.ts'
import { lockOrder, ownerIn, ship } from './orders.ts'

export const paymentVerbs = {
  pay: (actor: Actor, purpose: Purpose, claim: Claim | null): Steps<PayOutcome> =>
    unlessRevoked(
      actor,
      'orderId' in purpose ? payOrder(actor, purpose, claim) : payCents(actor, purpose.cents, claim),
      'token revoked' as const,
    ),

  *purgeKeys(atMost: number = purgedTogether): Steps<number> {
    const gone = yield sql`delete from idempotency_keys where id in (
                             select id from idempotency_keys where expires_at <= now_plus(0)
                             order by expires_at, id limit ${atMost}
                           ) returning 1`
    return gone.length
  },
}

/** Number of keys deleted in one transaction. It is small, so that other writes do not wait long. */
const purgedTogether = 200

export const paymentReads = {
  /** All payments, or those that a user made, by id. The order is looked up for each: a join would read all orders. */
  list(dialect: Pick<Dialect, 'page'>) {
    const columns = ['id', 'amount_cents', 'created_at']
    const shown = 'id, amount_cents, (select orders.id from orders where payment_id = listed.id), created_at'
    const all = pagesOf(dialect, { table: 'payments', columns, shown })
    const ofPayer = pagesOf(dialect, { table: 'payments', columns, shown, equal: [['payer_id', '$3']] })
    return (reach: Reach, request: PageRequest) => (reach === 'everyone' ? all(request) : ofPayer(request, reach))
  },
  /** A payment is visible to its payer and to the user of the order that it paid. */
  byId: (id: number, reach: Reach) =>
    sql`select payments.id, payments.amount_cents, orders.id, payments.created_at from payments
        left join orders on payment_id = payments.id
        where payments.id = ${id} and (coalesce(${ownerIn(reach)}, payer_id, 0) = coalesce(payer_id, 0)
          or orders.user_id = ${ownerIn(reach)})`,
  /** Also finds an expired key: it stays in the table until it is purged or used again. */
  byKey: ({ callerId, scope, key }: Claim) =>
    sql`select payments.id, payments.amount_cents, orders.id, payments.created_at, idempotency_keys.id,
               case when expires_at > now_plus(0) then 1 else 0 end
        from idempotency_keys join payments on payments.id = idempotency_keys.payment_id
        left join orders on orders.payment_id = payments.id
        where coalesce(caller_id, 0) = ${callerId ?? 0} and scope = ${scope} and key = ${key}`,
}

export const paymentOf = recordOf<Payment>('id', 'amountCents', 'orderId', 'createdAt')

/** The payment that belongs to a key, unless the key has expired. */
export function claimedOf(row: Row): Payment | undefined {
  return row[5] === 1 ? paymentOf(row) : undefined
}

type PayOutcome = Paid | PaymentRefusal | Rollback<Paid | PaymentRefusal>

function* payOrder(actor: Actor, { orderId, reach, condition }: OrderPurpose, claim: Claim | null): Steps<PayOutcome> {
  // Lock the order before looking up the key. A request that waits here for another one then sees that one's key.
  const next = claim === null ? undefined : paymentReads.byKey(claim)
  const order = yield* lockOrder(orderId, reach, next)
  if (order === undefined) return 'order absent'
  const [row] = next === undefined ? [] : yield next
  const known = row && claimedOf(row)
  if (known !== undefined) return { payment: known, order, replayed: true }
  const refusal = unmet(condition, () => revisionOf.order(order))
  if (refusal !== undefined) return refusal
  if (!allows(order, 'pay')) return 'order already paid'
  const cents = order.amount * 100
  const payment = paidOf(yield insertPayment(cents, actor), cents, order.id)
  yield queued(ship(order.id, payment.id))
  if (claim !== null) yield* keep(claim, row, payment.id)
  return { payment, order: { ...order, status: 'shipped' }, replayed: false }
}

/** Pays without waiting for the answer whether the key is known, and undoes the payment if it is. */
function* payCents(actor: Actor, cents: number, claim: Claim | null): Steps<PayOutcome> {
  const next = insertPayment(cents, actor)
  const [row] = claim === null ? [] : yield { ...paymentReads.byKey(claim), next }
  const known = row && claimedOf(row)
  if (known !== undefined) return new Rollback({ payment: known, order: null, replayed: true })
  const payment = paidOf(yield next, cents, null)
  if (claim !== null) yield* keep(claim, row, payment.id)
  return { payment, order: null, replayed: false }
}

/**
 * Keeps the key, in place of an expired one. If another transaction inserts the same key at the same time (PostgreSQL
 * only), this insert fails. The verb is then retried and finds the key.
 */
function* keep({ callerId, scope, key, ttlSeconds }: Claim, expired: Row | undefined, paymentId: number): Steps<void> {
  if (expired !== undefined) yield queued(sql`delete from idempotency_keys where id = ${expired[4] ?? null}`)
  yield queued(sql`insert into idempotency_keys (caller_id, scope, key, payment_id, expires_at)
                   values (${callerId}, ${scope}, ${key}, ${paymentId}, now_plus(${ttlSeconds}))`)
}

function insertPayment(cents: number, actor: Actor): Statement {
  return sql`insert into payments (amount_cents, payer_id, created_at)
             values (${cents}, (select id from users where id = ${idOf(actor)}), now_plus(0)) returning id, created_at`
}

function paidOf([row]: readonly Row[], cents: number, orderId: number | null): Payment {
  const [id = null, createdAt = null] = row ?? []
  return paymentOf([id, cents, orderId, createdAt])
}
