import assert from 'node:assert/strict'
import type { Engine } from '../../src/storage/engine.ts'
import { type Statement, sql } from '../../src/storage/sql.ts'
import type { Verbs } from '../../src/storage/verb.ts'

type Readable = Pick<Engine<Verbs>, 'read'>

/**
 * Checks the rules that the tables of orders, payments and keys must always satisfy, whatever was done or failed. It
 * does not rely on the constraints of the schema. Every check is one statement, so it also works under load. `keys` are
 * all keys with which `POST /payments` succeeded or may have succeeded, each used by one caller. Then each key must
 * have exactly one payment, and every payment must have paid an order or have a key.
 */
export async function assertLedger(engine: Readable, keys?: Iterable<string>): Promise<void> {
  for (const [offence, statement] of Object.entries(offences)) await assertNone(engine, offence, statement)
  if (keys === undefined) return
  await assertNone(engine, 'payments that neither paid an order nor have a key', strays)
  const rows = await engine.read(sql`select key from idempotency_keys where scope = '/payments' order by key`)
  assert.deepEqual(rows.map(([key]) => key).sort(), [...new Set(keys)].sort(), 'not one payment for each key')
}

/** The number of payments: all of them, or only those of this order. */
export async function countPayments(engine: Readable, orderId?: number): Promise<number> {
  const [row] = await engine.read(
    orderId === undefined
      ? sql`select count(*) from payments`
      : sql`select count(*) from payments join orders on orders.payment_id = payments.id where orders.id = ${orderId}`,
  )
  return Number(row?.[0])
}

async function assertNone(engine: Readable, offence: string, statement: Statement): Promise<void> {
  assert.deepEqual(await engine.read(statement), [], offence)
}

const strays = sql`select payments.id, payments.amount_cents from payments
  where not exists (select 1 from orders where orders.payment_id = payments.id)
    and not exists (select 1 from idempotency_keys where idempotency_keys.payment_id = payments.id)`

const offences: Readonly<Record<string, Statement>> = {
  'orders that are shipped without a payment of exactly their amount': sql`
    select orders.id, orders.amount_cents, payments.id, payments.amount_cents from orders
    left join payments on payments.id = orders.payment_id
    where status = 'shipped' and (payments.id is null or payments.amount_cents <> orders.amount_cents)`,
  'orders that are shipped without a whole tracking record': sql`
    select id from orders
    where status = 'shipped' and (tracking_carrier is null or tracking_number is null or shipped_at is null)`,
  'orders that are not shipped and yet have a payment or something of a tracking record': sql`
    select id, status from orders where status <> 'shipped'
    and coalesce(cast(payment_id as text), tracking_carrier, tracking_number, shipped_at) is not null`,
  'payments that paid more than one order': sql`
    select payment_id, count(*) from orders where payment_id is not null group by payment_id having count(*) > 1`,
  'tracking numbers of more than one order': sql`
    select tracking_number, count(*) from orders where tracking_number is not null
    group by tracking_number having count(*) > 1`,
  'orders whose amount is not the sum of their items': sql`
    select orders.id from orders where amount_cents <> 100 * coalesce(
      (select sum(cast(quantity as bigint) * price) from order_items where order_id = orders.id), 0)`,
  'items without an order': sql`select id from order_items where order_id not in (select id from orders)`,
  'keys without a payment': sql`
    select idempotency_keys.id, key from idempotency_keys
    left join payments on payments.id = idempotency_keys.payment_id where payments.id is null`,
  'payments of more than one key': sql`
    select payment_id, count(*) from idempotency_keys group by payment_id having count(*) > 1`,
  'keys that are there more than once for their caller and path': sql`
    select coalesce(caller_id, 0), scope, key, count(*) from idempotency_keys
    group by coalesce(caller_id, 0), scope, key having count(*) > 1`,
  "keys of an order's payment that name another order's": sql`
    select idempotency_keys.id, scope from idempotency_keys
    left join orders on orders.payment_id = idempotency_keys.payment_id
    where scope <> '/payments' and (orders.id is null or scope <> '/orders/' || cast(orders.id as text) || '/payment')`,
  'keys of POST /payments that name the payment of an order': sql`
    select idempotency_keys.id, key, orders.id from idempotency_keys
    join orders on orders.payment_id = idempotency_keys.payment_id where scope = '/payments'`,
}
