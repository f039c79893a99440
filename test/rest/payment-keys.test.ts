import assert from 'node:assert/strict'
import { after, describe, it, test } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { createStore } from '../../src/storage/store.ts'
import { execute } from '../faults/execute.ts'
import { startTestAppOn, type TestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { engineKinds, postgres, sqlite } from '../support/engines.ts'
import { type RawResponse, sendRaw } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import {
  bodyOf,
  createMember,
  createOrder,
  createUser,
  keyHeader,
  newKey,
  type PaymentBody,
  pay,
  payOrder,
  send,
  sendText,
  wasReplayed,
} from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { assertLedger, countPayments } from './ledger.ts'

const required = 'Idempotency-Key header required'
const malformed = 'Idempotency-Key must be one value of 1 to 255 visible ASCII characters'
const badAmount = 'amount must be a number above 0, at most 1000000000000, with at most two decimals'
const notJson = 'Request body is not valid JSON'
const visible = String.fromCharCode(...Array.from({ length: 94 }, (_, index) => 0x21 + index))

/** A `POST` with one header line for each of these keys, sent as raw bytes. */
function postWithKeys(app: TestApp, path: string, keys: readonly string[], encoding: BufferEncoding = 'latin1') {
  const body = '{"amount":5}'
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    ...keys.map(key => `Idempotency-Key: ${key}`),
  ]
  return sendRaw(app.port, Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`, encoding))
}

/** Checks that an answer is a replay of the first one: the same bytes, the replay header, and no new payment. */
function assertReplay(response: RawResponse, first: RawResponse): void {
  assert.equal(response.status, 200, response.body)
  assert.equal(response.body, first.body)
  assert.equal(wasReplayed(response), true)
  assert.equal(response.headers.get('location'), undefined)
  assert.equal(response.headers.get('link'), first.headers.get('link'))
}

function assertFirst(response: RawResponse, status: 200 | 201): void {
  assert.deepEqual([response.status, wasReplayed(response)], [status, false], response.body)
}

for (const kind of engineKinds) {
  describe(`Idempotency keys on ${kind.name}`, { skip: kind.skip }, () => {
    after(() => assertLedger(app.engine))
    const app = shared(() => startTestAppOn(kind, { BODY_LIMIT_BYTES: '2048', RATE_LIMIT_MAX: '0' }))

    const newOrder = async () => (await createOrder(app, (await createUser(app)).id)).id

    it('R-ERR-15: without the header, or with a blank one, POST /payments answers 400 with Idempotency-Key header required', async () => {
      const before = await countPayments(app.engine)
      const { status, body } = await send(app, 'POST /payments', { amount: 5 })
      assert.deepEqual([status, body], [400, `{"error":"${required}"}`])
      for (const blank of ['', ' ', '\t ', '""', '"  "', ' "" ']) {
        assertRefusal(await postWithKeys(app, '/payments', [blank]), 400, required)
        assertRefusal(await postWithKeys(app, '/api/payments', [blank]), 400, required)
      }
      assert.equal(await countPayments(app.engine), before)
    })

    it('R-PAY-2, R-PAY-3: a repeated key answers 200 with the same bytes as before, for any body, below /api too, and pays nothing', async () => {
      const key = newKey()
      const first = await pay(app, key, { amount: 12.3 })
      assertFirst(first, 201)
      const payments = await countPayments(app.engine)
      for (const text of ['{"amount":12.3}', '{"amount":99}', '{"amount":0}', '{"amount":"x"}', '{}', 'null', '[]']) {
        assertReplay(await sendText(app, 'POST /payments', text, undefined, keyHeader(key)), first)
      }
      assertReplay(await sendText(app, 'POST /api/payments', undefined, undefined, keyHeader(key)), first)
      assert.equal(await countPayments(app.engine), payments)
      assert.equal((await send(app, `GET ${first.headers.get('location')}`)).body, first.body)
    })

    it('a repeated payment of an order with its key answers 200 with the current order and the same payment', async () => {
      const [id, key] = [await newOrder(), newKey()]
      const first = await payOrder(app, id, key)
      assertFirst(first, 200)
      const payments = await countPayments(app.engine)
      for (const same of [key, key, `"${key}"`]) assertReplay(await payOrder(app, id, same), first)
      assertReplay(await sendText(app, `POST /api/orders/${id}/payment`, '{}', undefined, keyHeader(key)), first)
      assert.equal((await send(app, `GET /orders/${id}`)).body, first.body)
      assert.equal(await countPayments(app.engine), payments)
      assertRefusal(await payOrder(app, id), 409, 'Order is already paid')
      assertRefusal(await payOrder(app, id, newKey()), 409, 'Order is already paid')
    })

    it('a key is any 1 to 255 visible ASCII characters, all of which are compared, without quotes and spaces around it', async () => {
      const base = newKey()
      const more = ['', '%', '_', ',', "'"].map(end => base + end)
      const keys = ['k', 'x'.repeat(255), visible, base.toUpperCase(), ...more]
      const ids = new Set<number>()
      for (const key of keys) {
        const first = await postWithKeys(app, '/payments', [key])
        assertFirst(first, 201)
        ids.add(bodyOf<PaymentBody>(first, 201).id)
        for (const same of [`"${key}"`, `  ${key}\t`, ` "${key}" `])
          assertReplay(await postWithKeys(app, '/payments', [same]), first)
      }
      assert.equal(ids.size, keys.length)
    })

    it('a key that is longer, has other characters or is sent twice is refused with 400, and nothing is paid', async () => {
      const [id, before] = [await newOrder(), await countPayments(app.engine)]
      const long = 'x'.repeat(256)
      const single = [long, `"${long}"`, 'a b', 'a\tb', '" a"', 'ä', '\u00ff', 'a\u00a0', '\u00a0a']
      const twice = ['a a', 'a b', '"a" "b"', ' a', 'a b c', 'k ', '"k" ', ' '].map(text => text.split(' '))
      for (const keys of [...single.map(key => [key]), ...twice]) {
        for (const path of ['/payments', `/orders/${id}/payment`, '/orders/987654321/payment']) {
          assertRefusal(await postWithKeys(app, path, keys), 400, malformed)
        }
      }
      for (const key of ['ключ', '🎈', 'a\u0301']) {
        assertRefusal(await postWithKeys(app, '/payments', [key], 'utf8'), 400, malformed)
      }
      for (const key of ['a\u0001b', 'a\u007f', '\u0000']) {
        assertRefusal(await postWithKeys(app, '/payments', [key]), 400)
      }
      assert.equal(await countPayments(app.engine), before)
    })

    it('for the payment of an order a blank key counts as no key', async () => {
      for (const blank of ['', '  ', '""']) {
        const id = await newOrder()
        assertFirst(await postWithKeys(app, `/orders/${id}/payment`, [blank]), 200)
        assertRefusal(await postWithKeys(app, `/orders/${id}/payment`, [blank]), 409, 'Order is already paid')
      }
      const [row] = await app.engine.read(sql`select count(*) from idempotency_keys where trim(key, '" ') = ''`)
      assert.equal(Number(row?.[0]), 0)
    })

    it('the key that paid an order belongs to its caller: it is no replay for another user or an anonymous caller', async () => {
      const [ann, bob] = [await createMember(app), await createMember(app)]
      const [id, key] = [await newOrder(), newKey()]
      const paid = await payOrder(app, id, key, ann.token)
      assertFirst(paid, 200)
      for (const token of [bob.token, undefined])
        assertRefusal(await payOrder(app, id, key, token), 409, 'Order is already paid')
      assertReplay(await payOrder(app, id, key, ann.token), paid)
    })

    it('R-ERR-15: the order of checks: token, then the key, then size, type and syntax of the body, then the replay, then the body', async () => {
      const used = newKey()
      const first = await pay(app, used)
      const free = newKey()
      const post = (text: string, key: string | undefined, { token, type }: { token?: string; type?: string } = {}) =>
        sendText(app, 'POST /payments', text, token, {
          ...(key !== undefined && keyHeader(key)),
          ...(type !== undefined && { 'content-type': type }),
        })
      const large = JSON.stringify({ amount: 5, note: 'x'.repeat(4096) })
      for (const [key, refusal] of [
        [undefined, required],
        ['', required],
        ['a b', malformed],
        [used],
        [free],
      ] as const) {
        for (const text of [large, '{', '{"amount":0}', '{"amount":5}']) {
          for (const type of ['text/plain', 'application/json']) {
            assertRefusal(await post(text, key, { token: 'dead', type }), 401, 'Invalid or expired token')
            if (refusal !== undefined) assertRefusal(await post(text, key, { type }), 400, refusal)
          }
        }
        if (refusal !== undefined) continue
        assertRefusal(await post(large, key, { type: 'text/plain' }), 413)
        assertRefusal(await post('{', key, { type: 'text/plain' }), 415)
        assertRefusal(await post('{', key), 400, notJson)
      }
      const order = `POST /orders/${await newOrder()}/payment`
      assertRefusal(await sendText(app, order, '{', undefined, keyHeader('a b')), 400, malformed)
      assertRefusal(await sendText(app, order, '{', undefined, keyHeader(free)), 400, notJson)
      assertReplay(await post('{"amount":0}', used), first)
      assertRefusal(await post('{"amount":0}', free), 400, badAmount)
      assertFirst(await post('{"amount":5}', free), 201)
    })

    it('a request that failed stores nothing, and its key can be used again', async () => {
      const key = newKey()
      const { id } = await createUser(app)
      const order = await createOrder(app, id)
      const next = order.id + 1
      assertRefusal(await payOrder(app, next, key), 404, 'Order not found')
      assert.equal((await createOrder(app, id)).id, next)
      assertFirst(await payOrder(app, order.id, newKey()), 200)
      assertRefusal(await payOrder(app, order.id, key), 409, 'Order is already paid')
      await app.app.toggleMaintenance()
      assertRefusal(await pay(app, key), 503)
      assertRefusal(await payOrder(app, next, key), 503)
      await app.app.toggleMaintenance()
      assertFirst(await payOrder(app, next, key), 200)
      assertFirst(await pay(app, key), 201)
    })

    it('expired keys are deleted in small batches', async () => {
      const old = "'2000-01-01T00:00:00.000Z'"
      await execute(
        app.database,
        `insert into payments (amount_cents, created_at)
         with recursive n(i) as (select 1 union all select i + 1 from n where i < 450) select 777, ${old} from n;
         insert into idempotency_keys (scope, key, payment_id, expires_at)
         select '/payments', 'old-' || id, id, ${old} from payments where amount_cents = 777`,
      )
      const portions: number[] = []
      for (let gone = -1; gone !== 0; portions.push(gone)) gone = await createStore(app.engine).purgeKeys()
      assert.deepEqual(portions, [200, 200, 50, 0])
    })
  })
}

for (const [setting, seconds] of [
  [{}, 86_400],
  [{ IDEMPOTENCY_TTL_SECONDS: '60' }, 60],
] as const) {
  test(`R-LIM-14: on SQLite a key is replayed for less than ${seconds} seconds, and pays again from then on`, async () => {
    const clock = new TestClock()
    await using app = await startTestAppOn(sqlite, setting, { clock })
    const order = await createOrder(app, (await createUser(app)).id)
    const ofOrder = await payOrder(app, order.id, 'k')
    const first = await pay(app, 'k')
    clock.pass(-3_600_000)
    assertReplay(await pay(app, 'k'), first)
    clock.pass(3_600_000 + seconds * 1000 - 1)
    assertReplay(await pay(app, 'k'), first)
    assertReplay(await payOrder(app, order.id, 'k'), ofOrder)
    clock.pass(1)
    assertRefusal(await pay(app, 'k', { amount: 0 }), 400)
    const second = await pay(app, 'k')
    assertFirst(second, 201)
    assert.notEqual(bodyOf<PaymentBody>(second, 201).id, bodyOf<PaymentBody>(first, 201).id)
    assertRefusal(await payOrder(app, order.id, 'k'), 409, 'Order is already paid')
    clock.pass(seconds * 1000 - 1)
    assertReplay(await pay(app, 'k'), second)
    assert.equal(await countPayments(app.engine), 3)
    await assertLedger(app.engine)
  })
}

test('R-LIM-14: on PostgreSQL the clock of the database decides when a key expires, not the clock of the instance', {
  skip: postgres.skip,
}, async () => {
  const clock = new TestClock(Date.now())
  await using app = await startTestAppOn(postgres, { IDEMPOTENCY_TTL_SECONDS: '31536000' }, { clock })
  const rows = async () => app.engine.read(sql`select expires_at from idempotency_keys`)
  const first = await pay(app, 'k')
  const expiry = Date.parse(bodyOf<PaymentBody>(first, 201).created_at) + 31_536_000_000
  assert.deepEqual(await rows(), [[new Date(expiry).toISOString()]])
  clock.pass(1000 * 86_400_000)
  assertReplay(await pay(app, 'k'), first)
  await execute(app.database, `update idempotency_keys set expires_at = '2000-01-01T00:00:00.000Z'`)
  clock.pass(-2000 * 86_400_000)
  const second = await pay(app, 'k')
  assertFirst(second, 201)
  assertReplay(await pay(app, 'k'), second)
  assert.equal(await countPayments(app.engine), 2)
  assert.equal((await rows()).length, 1)
})
