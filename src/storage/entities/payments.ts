import type { Reach } from '../../core/access.ts'
import type { Actor } from '../../core/actor.ts'
import { allows } from '../../core/orders/order.ts'
import type { Payment } from '../../core/payments/payment.ts'
import type { Claim, Paid, PaymentRefusal, Purpose } from '../../core/store.ts'
import { integerIn, integerOrNullIn, textIn } from '../columns.ts'
import { type Row, sql } from '../sql.ts'
import type { Steps, TraitsOf } from '../verb.ts'
import { callerOf, isRevoked } from './actors.ts'
import { lockOf, lockOrder, ownerIn, ship } from './orders.ts'

export const paymentVerbs = {
  *pay(actor: Actor, purpose: Purpose, claim: Claim | null): Steps<Paid | PaymentRefusal> {
    if (yield* isRevoked(actor)) return 'token revoked'
    // Lock the order before looking up the key. A request that waits here for another one then sees that one's key.
    const order = 'orderId' in purpose ? yield* lockOrder(purpose.orderId, purpose.reach) : null
    if (order === undefined) return 'order absent'
    const known = claim === null ? undefined : yield* findKey(claim)
    if (known !== undefined) return { payment: known, order, replayed: true }
    if (order !== null && !allows(order, 'pay')) return 'order already paid'
    const payerId = actor.kind === 'user' ? actor.id : null
    const cents = 'cents' in purpose ? purpose.cents : (order?.amount ?? 0) * 100
    const payment = yield* insertPayment(cents, payerId, order?.id ?? null)
    if (order !== null) yield ship(order.id, payment.id)
    if (claim !== null) yield insertKey(claim, payment.id)
    return { payment, order: order && { ...order, status: 'shipped' }, replayed: false }
  },

  *purgeKeys(atMost: number): Steps<number> {
    const gone = yield sql`delete from idempotency_keys where id in (
                             select id from idempotency_keys where expires_at <= now_plus(0)
                             order by expires_at, id limit ${atMost}
                           ) returning id`
    return gone.length
  },
}

export const paymentTraits: TraitsOf<typeof paymentVerbs> = {
  pay: {
    caller: callerOf,
    locks: (_actor, purpose) => ('orderId' in purpose ? lockOf(purpose.orderId) : []),
  },
}

/** Number of keys deleted in one transaction. It is small, so that other writes do not wait long. */
export const purgedTogether = 200

export const paymentReads = {
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

export function paymentOf([id, amountCents, orderId, createdAt]: Row): Payment {
  return {
    id: integerIn(id),
    amountCents: integerIn(amountCents),
    orderId: integerOrNullIn(orderId),
    createdAt: textIn(createdAt),
  }
}

/** The payment that belongs to a key, unless the key has expired. */
export function claimedOf(row: Row): Payment | undefined {
  return row[5] === 1 ? paymentOf(row) : undefined
}

function* findKey(claim: Claim): Steps<Payment | undefined> {
  const [row] = yield paymentReads.byKey(claim)
  const payment = row && claimedOf(row)
  if (row !== undefined && payment === undefined) yield sql`delete from idempotency_keys where id = ${row[4] ?? null}`
  return payment
}

// If another transaction inserts the same key at the same time (PostgreSQL only), this insert fails. The verb is then
// retried and finds the key.
function insertKey({ callerId, scope, key, ttlSeconds }: Claim, paymentId: number) {
  return sql`insert into idempotency_keys (caller_id, scope, key, payment_id, expires_at)
             values (${callerId}, ${scope}, ${key}, ${paymentId}, now_plus(${ttlSeconds}))`
}

function* insertPayment(cents: number, payerId: number | null, orderId: number | null): Steps<Payment> {
  const [row] = yield sql`insert into payments (amount_cents, payer_id, created_at)
                          values (${cents}, ${payerId}, now_plus(0)) returning id, created_at`
  const [id = null, createdAt = null] = row ?? []
  return paymentOf([id, cents, orderId, createdAt])
}
