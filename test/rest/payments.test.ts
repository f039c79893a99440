import assert from 'node:assert/strict'
import { after, describe, it, test } from 'node:test'
import fc from 'fast-check'
import { decodeCents } from '../../src/rest/payments.ts'
import { sql } from '../../src/storage/sql.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { runs } from '../support/form.ts'
import { assertRefusal } from '../support/refusal.ts'
import {
  bodyOf,
  createOrder,
  createUser,
  keyHeader,
  newKey,
  type OrderBody,
  type PaymentBody,
  pay,
  send,
  sendText,
  wasReplayed,
} from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { assertLedger, countPayments } from './ledger.ts'

const badAmount = 'amount must be a number above 0, at most 1000000000000, with at most two decimals'

/** Amounts as written in a body, the cents that must be stored, and the amount in the answer. */
const goodAmounts: readonly (readonly [written: string, cents: number, returned: string])[] = [
  ['0.01', 1, '0.01'],
  ['1.10', 110, '1.1'],
  ['4.35', 435, '4.35'],
  ['1.005E+3', 100_500, '1005'],
  ['90071992547.41', 9_007_199_254_741, '90071992547.41'],
  ['999999999999.99', 99_999_999_999_999, '999999999999.99'],
  ['1e12', 100_000_000_000_000, '1000000000000'],
  ['1.0000000000000001', 100, '1'], // what JavaScript reads
]

const badAmounts: readonly string[] = [
  ...['0', '-0', '0.00', '-5', '-0.01', '0.001', '0.005', '0.009', '1.001', '0.0100001', '2.675', '999999999999.991'],
  ...['1000000000000.01', '1000000000001', '1e13', '1e21', '1e999', '-1e999', '9007199254740993', '1e-3'],
  ...['"100"', '"1.10"', '""', 'null', 'true', 'false', '[]', '[5]', '{}', '{"value":5}'],
]

/** A number of cents, in the usual notation. */
const written = (cents: number) => String(cents).padStart(3, '0').replace(/..$/, '.$&')

const mostCents = 100_000_000_000_000
const anyCents = fc.oneof(
  ...[mostCents, 1_000_000].map(max => fc.integer({ min: 1, max })),
  fc.integer({ min: mostCents - 1_000_000, max: mostCents }),
)

for (const kind of engineKinds) {
  describe(`Payments on ${kind.name}`, { skip: kind.skip }, () => {
    after(() => assertLedger(app.engine, keys))
    const app = shared(() => startTestAppOn(kind))
    /** The keys of all payments that this suite made by `POST /payments`. */
    const keys: string[] = []

    const usedKey = () => {
      const key = newKey()
      keys.push(key)
      return key
    }
    const payText = (key: string, text: string | undefined) =>
      sendText(app, 'POST /payments', text, undefined, keyHeader(key))
    const centsOf = async ({ id }: PaymentBody) =>
      (await app.engine.read(sql`select amount_cents from payments where id = ${id}`))[0]?.[0]

    it('R-PAY-1: the first request with a key pays and answers 201 with the payment, and its Location', async () => {
      const response = await pay(app, usedKey(), { amount: 12.34 })
      const { id, created_at: createdAt } = bodyOf<PaymentBody>(response, 201)
      assert.ok(Number.isSafeInteger(id) && id > 0)
      assert.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000)
      assert.equal(response.body, `{"id":${id},"amount":12.34,"order_id":null,"created_at":"${createdAt}"}`)
      assert.equal(response.headers.get('location'), `/payments/${id}`)
      assert.equal(wasReplayed(response), false)
      assert.equal((await send(app, `GET /payments/${id}`)).body, response.body)
    })

    for (const [amount, cents, returned] of goodAmounts) {
      it(`an amount of ${amount} is stored exactly and returned as ${returned}`, async () => {
        const key = usedKey()
        const response = await payText(key, `{"amount":${amount}}`)
        const payment = bodyOf<PaymentBody>(response, 201)
        assert.equal(await centsOf(payment), cents)
        assert.ok(response.body.includes(`"amount":${returned},`), response.body)
        assert.equal((await send(app, `GET /payments/${payment.id}`)).body, response.body)
        assert.equal((await payText(key, `{"amount":${amount}}`)).body, response.body)
      })
    }

    it('R-ERR-6: any other amount is refused with 400, and its key can be used again', async () => {
      const key = usedKey()
      const before = await countPayments(app.engine)
      for (const body of [...badAmounts.map(amount => `{"amount":${amount}}`), '{}', '{"Amount":5}'])
        assertRefusal(await payText(key, body), 400, badAmount)
      assert.equal(await countPayments(app.engine), before)
      const response = await payText(key, '{"amount":5}')
      assert.deepEqual([response.status, wasReplayed(response)], [201, false])
    })

    it('the amount is the last field of that name, however it is written, and no nested one', async () => {
      const good = ['{"amount":0,"amount":5}', '{"\\u0061mount":5,"nested":{"amount":0}}']
      for (const body of good) assert.equal((await payText(usedKey(), body)).status, 201, body)
      const bad = ['{"amount":5,"amount":0}', '{"nested":{"amount":5}}', '{"__proto__":{"amount":5}}']
      for (const body of bad) assertRefusal(await payText(newKey(), body), 400, badAmount)
    })

    it('other fields are ignored, and none of them pays an order', async () => {
      const order = await createOrder(app, (await createUser(app)).id)
      const more = { id: 1, order_id: order.id, created_at: 'x', payer_id: 1, currency: 'EUR', status: 'done' }
      const payment = bodyOf<PaymentBody>(await pay(app, usedKey(), { ...more, amount: order.amount }), 201)
      assert.equal(payment.order_id, null)
      assert.deepEqual(Object.keys(payment), ['id', 'amount', 'order_id', 'created_at'])
      assert.deepEqual(bodyOf<OrderBody>(await send(app, `GET /orders/${order.id}`)), order)
    })
  })
}

test('every amount from 0.01 to 10^12 is decoded exactly, in every notation, and one with a third decimal or above is refused', () => {
  const decode = (amount: string) => decodeCents(JSON.parse(`{"amount":${amount}}`))
  const refused = (amount: string) => assert.throws(() => decode(amount), { code: 'bad-input' }, amount)
  const property = fc.property(anyCents, fc.integer({ min: 1, max: 9 }), (cents, last) => {
    for (const text of [written(cents), `${cents}e-2`]) {
      assert.equal(decode(text), cents)
      // The text of the amount in the answer has exactly the value that was sent.
      assert.equal(JSON.stringify(cents / 100), written(cents).replace(/\.?0+$/, ''))
    }
    refused(`${written(cents)}${last}`)
    refused(`${cents + mostCents}e-2`)
  })
  fc.assert(property, { numRuns: runs(1_000, 50_000) })
})
