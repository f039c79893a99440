import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefusal } from '../support/refusal.ts'
import { bodyOf, createUser, type OrderBody, send, unstorable } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { assertLedger } from './ledger.ts'

interface Item {
  readonly name: string
  readonly quantity: number
  readonly price: number
}

/** One visible character that has length two in JavaScript. */
const balloon = '🎈'
const gear: Item = { name: 'Gear', quantity: 1, price: 1 }
const many = (count: number, item: Item = gear): readonly Item[] => Array(count).fill(item)

/** Extreme valid orders: stored unchanged, and summed up exactly. */
const good: Readonly<Record<string, readonly [items: readonly Item[], amount: number]>> = {
  'the longest name': [[{ ...gear, name: 'x'.repeat(320) }], 1],
  'the longest name in UTF-16 code units': [[{ ...gear, name: balloon.repeat(160) }], 1],
  'a name with spaces around it': [[{ ...gear, name: ' a\tb\n' }], 1],
  'the largest quantity': [[{ ...gear, quantity: 10_000 }], 10_000],
  'the largest price': [[{ ...gear, price: 1_000_000_000 }], 1_000_000_000],
  'a free item together with another one': [[{ ...gear, price: 0 }, gear], 1],
  'the largest sum in one item': [[{ name: 'Gear', quantity: 10_000, price: 100_000_000 }], 1_000_000_000_000],
  'the largest sum in a hundred items': [
    many(100, { name: 'Gear', quantity: 10, price: 1_000_000_000 }),
    1_000_000_000_000,
  ],
  'a sum of odd numbers': [[{ name: 'Gear', quantity: 9_999, price: 99_999_999 }, gear], 999_899_990_002],
}

const noInteger = [-1, 0.5, '1', null, true, [1], 1e21, undefined]

const list = 'items must be a list of 1 to 100 items'
const sum = 'The sum of all items must be from 1 to 1000000000000'

/** Refused inputs, each with its error message. */
const bad: Readonly<Record<string, readonly unknown[]>> = {
  [list]: [undefined, null, {}, 'x', 5, true, [], many(101), { 0: gear, length: 1 }],
  'items[0] must be an object': [[null], [1], ['x'], [true], [[]], [[gear]]],
  'items[1] must be an object': [[gear, null, { ...gear, quantity: 0 }]],
  'items[0].name must be a string': [undefined, null, 1, true, ['x'], {}].map(name => [{ ...gear, name }]),
  'items[0].name must not be empty': ['', ' ', '\t\n\u3000'].map(name => [{ ...gear, name }]),
  'items[0].name must be at most 320 characters long': ['x'.repeat(321), `${balloon.repeat(160)}x`].map(name => [
    { ...gear, name },
  ]),
  'items[0].name contains characters that are not allowed': unstorable.map(name => [{ ...gear, name }]),
  'items[0].quantity must be an integer from 1 to 10000': [0, 10_001, ...noInteger].map(quantity => [
    { ...gear, quantity },
  ]),
  'items[0].price must be an integer from 0 to 1000000000': [1_000_000_001, ...noInteger].map(price => [
    { ...gear, price },
  ]),
  'items[99].quantity must be an integer from 1 to 10000': [[...many(99), { ...gear, quantity: 0 }]],
  [sum]: [
    [{ ...gear, price: 0 }],
    many(100, { ...gear, price: 0 }),
    [{ name: 'Gear', quantity: 10_000, price: 100_000_000 }, gear],
    [{ name: 'Gear', quantity: 10_000, price: 100_000_001 }],
    many(100, { name: 'Gear', quantity: 10_000, price: 1_000_000_000 }),
  ],
}

for (const kind of engineKinds) {
  describe(`Input of orders, on ${kind.name}`, { skip: kind.skip }, () => {
    after(() => assertLedger(app.engine))
    const app = shared(() => startTestAppOn(kind))
    let path: string
    before(async () => {
      path = `/users/${(await createUser(app)).id}/orders`
    })

    const rows = async () => {
      const counts = [sql`select count(*) from orders`, sql`select count(*) from order_items`]
      return await Promise.all(counts.map(async statement => Number((await app.engine.read(statement))[0]?.[0])))
    }
    const order = async (items: unknown) => bodyOf<OrderBody>(await send(app, `POST ${path}`, { items }), 201)
    const itemsOf = async ({ id }: OrderBody) => {
      const items = bodyOf<(Item & { id: number })[]>(await send(app, `GET /orders/${id}/items`))
      return items.map(({ id: _id, ...item }) => item)
    }

    for (const [what, [items, amount]] of Object.entries(good)) {
      it(`${what} can be ordered, is stored unchanged and summed up exactly`, async () => {
        const created = await order(items)
        assert.equal(created.amount, amount)
        assert.deepEqual(await itemsOf(created), items)
        assert.deepEqual(bodyOf(await send(app, `GET /orders/${created.id}`)), created)
      })
    }

    for (const [sentence, cases] of kind.kind === 'sqlite' ? Object.entries(bad) : []) {
      it(`R-ERR-6, R-ERR-7: "${sentence}" is answered with 400, also for an absent user, and nothing is stored`, async () => {
        const before = await rows()
        for (const items of cases) assertRefusal(await send(app, `POST ${path}`, { items }), 400, sentence)
        for (const absent of ['/users/987654321/orders', '/users/abc/orders']) {
          assertRefusal(await send(app, `POST ${absent}`, { items: cases[0] }), 400, sentence)
        }
        assert.deepEqual(await rows(), before)
      })
    }

    it('unknown fields are ignored and not stored', async () => {
      const item = { ...gear, quantity: 3, id: 1, order_id: 1, discount: 0.5, amount: 7 }
      const body = { items: [item], id: 1, status: 'shipped', amount: 1, user_id: 1, payment_id: 1, _links: {} }
      const created = bodyOf<OrderBody>(await send(app, `POST ${path}`, body), 201)
      assert.deepEqual([created.status, created.amount], ['pending_payment', 3])
      assert.ok('pay' in created._links)
      assert.deepEqual(await itemsOf(created), [{ ...gear, quantity: 3 }])
    })
  })
}
