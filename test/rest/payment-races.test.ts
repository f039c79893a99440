import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, describe, it, test } from 'node:test'
import { Access } from '../../src/core/access.ts'
import { anonymous } from '../../src/core/actor.ts'
import { unavailable } from '../../src/core/errors.ts'
import { Payments } from '../../src/core/payments/operations.ts'
import { sql } from '../../src/storage/sql.ts'
import { execute } from '../faults/execute.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { engineKinds, sqlite } from '../support/engines.ts'
import type { RawResponse, Served } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { assertRefusal } from '../support/refusal.ts'
import {
  atOnce,
  bodyOf,
  createMember,
  createOrder,
  createUser,
  newKey,
  type OrderBody,
  type PaymentBody,
  pay,
  paymentLinkOf,
  payOrder,
  send,
  someItems,
  tally,
  wasReplayed,
} from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { metricOf } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { assertLedger, countPayments } from './ledger.ts'

/** Checks that the answers to one key are one 201 and otherwise 200 with Idempotent-Replayed, all with the same bytes. */
function assertOnePayment(answers: readonly RawResponse[]): void {
  assert.deepEqual(tally(answers), { 200: answers.length - 1, 201: 1 })
  assert.equal(new Set(answers.map(({ body }) => body)).size, 1)
  for (const answer of answers) assert.equal(wasReplayed(answer), answer.status === 200)
}

test('requests with one key that arrive while it is being executed share the execution', async () => {
  await using app = await startTestAppOn(sqlite)
  using file = new DatabaseSync(app.database.location)
  file.exec('begin immediate')
  const written = () => metricOf(app, 'duet_store_write_seconds_count')
  const [key, before] = [newKey(), await written()]
  const asked = atOnce(5, () => pay(app, key))
  await waitUntil(async () => (await metricOf(app, 'duet_http_requests_in_flight')) === 6)
  file.exec('rollback')
  assertOnePayment(await asked)
  assert.equal(await written(), before + 1)
})

test('requests with one key that wait for the same execution do not wait for an outage one after the other', async () => {
  let reads = 0
  const claimedPayment = async () => {
    reads++
    throw unavailable(new Error('away'))
  }
  const payments = new Payments({ store: { claimedPayment } as never, access: new Access('open'), keyTtlSeconds: 60 })
  const key = () => ({ scope: '/payments', key: 'k' })
  const asked = Array.from({ length: 5 }, () => payments.pay(anonymous, key, () => 100))
  await Promise.all(asked.map(each => assert.rejects(each, { code: 'unavailable' })))
  assert.equal(reads, 1)
})

for (const kind of engineKinds) {
  // PostgreSQL can serve several instances, which get the requests by turns.
  const isShared = kind.kind === 'postgres'
  describe(`Concurrent payments, on ${kind.name}${isShared ? ' with two instances' : ''}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind))
    const settings = () => ({ DATABASE_URL: app.database.location, TOKEN_KEYS: tokenKeys })
    const other = isShared ? shared(() => startTestApp(settings())) : app
    const either = (index: number): Served => (index % 2 === 0 ? app : other)
    afterEach(() => assertLedger(app.engine))

    const newOrder = async () => (await createOrder(app, (await createUser(app)).id)).id

    it('R-PAY-2, R-PAY-3: of 50 requests with one key one pays and answers 201, 49 answer 200, all with the same bytes', async () => {
      const key = newKey()
      const before = await countPayments(app.engine)
      assertOnePayment(await atOnce(50, index => pay(either(index), key, { amount: index + 1 })))
      assert.equal(await countPayments(app.engine), before + 1)
    })

    it('of concurrent requests with one key those with a bad body may be refused, and exactly one payment is made', async () => {
      const key = newKey()
      const before = await countPayments(app.engine)
      const answers = await atOnce(30, index => pay(either(index), key, { amount: index % 3 === 0 ? 5 : 0 }))
      assertOnePayment(answers.filter(({ status }, index) => status !== 400 || index % 3 === 0))
      assert.equal(await countPayments(app.engine), before + 1)
    })

    it('the same key of two users and of an anonymous caller at once pays once for each', async () => {
      const callers = [(await createMember(app)).token, (await createMember(app)).token, undefined]
      const key = newKey()
      const answers = await atOnce(24, index => pay(either(index), key, { amount: 5 }, callers[index % 3]))
      for (const caller of callers.keys()) assertOnePayment(answers.filter((_, index) => index % 3 === caller))
      assert.equal(new Set(answers.map(({ body }) => body)).size, 3)
    })

    it('the same key for /payments and for two orders at once pays three times', async () => {
      for (let round = 0; round < 5; round++) {
        const [one, other, key] = [await newOrder(), await newOrder(), newKey()]
        const paid = [pay(app, key), payOrder(app, one, key), payOrder(app, other, key)] as const
        const [payment, ...orders] = await Promise.all(paid)
        assert.equal(payment.status, 201)
        for (const order of orders) assert.deepEqual([order.status, wasReplayed(order)], [200, false])
        assert.equal(new Set(orders.map(paymentLinkOf)).size, 2)
      }
    })

    it('one of many concurrent requests with an expired key makes a new payment', async () => {
      const key = newKey()
      await pay(app, key)
      const before = await countPayments(app.engine)
      const expire = `update idempotency_keys set expires_at = '2000-01-01T00:00:00.000Z' where key = '${key}'`
      await execute(app.database, expire)
      assertOnePayment(await atOnce(20, index => pay(either(index), key)))
      assert.equal(await countPayments(app.engine), before + 1)
    })

    it('of 20 requests that pay one order, with different keys or without one, one succeeds and 19 get 409', async () => {
      for (const keyOf of [() => undefined, newKey, (index: number) => (index % 2 === 0 ? newKey() : undefined)]) {
        const id = await newOrder()
        const before = await countPayments(app.engine)
        const answers = await atOnce(20, index => payOrder(either(index >> 1), id, keyOf(index)))
        assert.deepEqual(tally(answers), { 200: 1, 409: 19 })
        for (const answer of answers) {
          if (answer.status === 409) assertRefusal(answer, 409, 'Order is already paid')
          else assert.equal(wasReplayed(answer), false)
        }
        assert.equal(await countPayments(app.engine), before + 1)
        assert.equal(await countPayments(app.engine, id), 1)
      }
    })

    it('of 20 requests that pay one order with one key all get 200 and the same payment', async () => {
      const [id, key] = [await newOrder(), newKey()]
      const before = await countPayments(app.engine)
      const answers = await atOnce(20, index => payOrder(either(index), id, key))
      assert.deepEqual(tally(answers), { 200: 20 })
      assert.equal(new Set(answers.map(answer => `${paymentLinkOf(answer)} ${answer.body}`)).size, 1)
      assert.equal(answers.filter(answer => !wasReplayed(answer)).length, 1)
      assert.equal(await countPayments(app.engine), before + 1)
      const [first = assert.fail()] = answers
      const { amount, order_id: orderId } = bodyOf<PaymentBody>(await send(app, `GET ${paymentLinkOf(first)}`))
      assert.deepEqual([orderId, amount], [id, bodyOf<OrderBody>(first).amount])
    })

    it('an order that is paid and cancelled at once is either paid and kept, or deleted without a payment', async t => {
      const before = await countPayments(app.engine)
      const ids = await atOnce(40, newOrder)
      const rounds = await atOnce(40, async round => {
        const id = ids[round] ?? 0
        const pay = () => payOrder(either(round), id, round % 3 === 0 ? newKey() : undefined)
        const early = round % 2 === 0 ? pay() : undefined
        const cancelled = send(either(round + 1), `DELETE /orders/${id}`)
        return [id, await (early ?? pay()), await cancelled] as const
      })
      let shipped = 0
      for (const [id, paid, cancelled] of rounds) {
        const now = await send(app, `GET /orders/${id}`)
        if (paid.status === 200) {
          shipped++
          assertRefusal(cancelled, 409, 'Order is already shipped')
          assert.deepEqual([now.status, now.body], [200, paid.body])
        } else {
          assertRefusal(paid, 404, 'Order not found')
          assert.equal(cancelled.status, 204)
          assert.equal(now.status, 404)
        }
      }
      assert.equal(await countPayments(app.engine), before + shipped)
      t.diagnostic(`${shipped} of 40 were paid, the others cancelled`)
    })

    it('deleting a user during its orders and payments causes no internal error and loses nothing', async () => {
      for (let round = 0; round < 3; round++) {
        const user = await createMember(app)
        const ids = await atOnce(6, async () => (await createOrder(app, user.id)).id)
        const requests: ((to: Served) => Promise<RawResponse>)[] = [
          ...ids.slice(0, 3).map(id => (to: Served) => payOrder(to, id, newKey(), user.token)),
          ...ids.slice(3).map(id => (to: Served) => payOrder(to, id)),
          ...Array(8).fill((to: Served) => pay(to, newKey(), { amount: 5 }, user.token)),
          ...Array(2).fill((to: Served) => send(to, `POST /users/${user.id}/orders`, { items: someItems() })),
        ]
        requests.splice(round * 5, 0, to => send(to, `DELETE /users/${user.id}`))
        const answers = await Promise.all(requests.map((request, index) => request(either(index))))
        for (const { status, headers, body } of answers) {
          assert.ok([200, 201, 204, 401, 404].includes(status), `${status} ${body}`)
          if (status === 201) assert.equal((await send(app, `GET ${headers.get('location')}`)).status, 200)
        }
        for (const id of ids.slice(3)) {
          const { status } = bodyOf<OrderBody>(await send(app, `GET /orders/${id}`))
          assert.equal(status, 'shipped', 'its payer was not deleted, so the order is paid')
        }
        const [left] = await app.engine.read(
          sql`select (select count(*) from orders where user_id = ${user.id}),
                     (select count(*) from payments where payer_id = ${user.id}),
                     (select count(*) from idempotency_keys where caller_id = ${user.id})`,
        )
        assert.deepEqual(left?.map(Number), [0, 0, 0])
      }
    })
  })
}
