import assert from 'node:assert/strict'
import { after, describe, it, test } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefusal } from '../support/refusal.ts'
import {
  bodyOf,
  createMember,
  createOrder,
  createUser,
  impossibleIds,
  logIn,
  newKey,
  type OrderBody,
  type PaymentBody,
  pay,
  paymentLinkOf,
  payOrder,
  send,
  somebody,
  someItems,
  type UserBody,
  wasReplayed,
} from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { everything } from '../support/tables.ts'
import { assertLedger, countPayments } from './ledger.ts'

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const absent = 987_654_321

/** The complete JSON of an order. */
function representation(order: OrderBody, status: 'pending_payment' | 'shipped', userId: number, prefix = ''): string {
  const { id, amount, created_at } = order
  const self = `${prefix}/orders/${id}`
  const actions =
    status === 'pending_payment'
      ? `"pay":{"href":"${self}/payment","method":"POST"},"cancel":{"href":"${self}","method":"DELETE"}`
      : `"track":{"href":"${self}/tracking","method":"GET"}`
  assert.match(created_at, instant)
  return `{"id":${id},"status":"${status}","amount":${amount},"created_at":"${created_at}","user_id":${userId},"_links":{"self":{"href":"${self}"},${actions}}}`
}

for (const kind of engineKinds) {
  describe(`Orders on ${kind.name}`, { skip: kind.skip }, () => {
    after(() => assertLedger(app.engine))
    const app = shared(() => startTestAppOn(kind, { RATE_LIMIT_MAX: '0' }))

    it('R-ORD-1, R-ORD-2, R-ORD-3, R-ORD-4, R-ORD-5, R-ORD-6, R-ORD-7, R-ORD-8: POST /users/<user_id>/orders answers 201 with exactly id, status, amount, which is the sum of the items, its time and user, and the links self, pay and cancel, and its Location', async () => {
      const user = await createUser(app)
      const items = [
        { name: 'Punched cards', quantity: 2, price: 40 },
        { name: 'Brass gear', quantity: 1, price: 120 },
        { name: 'A smile', quantity: 3, price: 0 },
      ]
      const response = await send(app, `POST /users/${user.id}/orders`, { items })
      const order = bodyOf<OrderBody>(response, 201)
      const { id } = order
      assert.ok(Number.isSafeInteger(id) && id > 0)
      assert.equal(response.body, representation({ ...order, amount: 200 }, 'pending_payment', user.id))
      assert.equal(response.headers.get('location'), `/orders/${id}`)
      assert.equal((await send(app, `GET ${response.headers.get('location')}`)).body, response.body)
    })

    it('R-ORD-11, R-API-5: GET /users/<user_id>/orders lists exactly the orders of that user, sorted by id, in the same form as a single order', async () => {
      const [user, other] = [await createUser(app), await createUser(app)]
      const path = `/users/${user.id}/orders`
      assert.equal((await send(app, `GET ${path}`)).body, '[]')
      const order = async (buyer: UserBody) => (await createOrder(app, buyer.id)).id
      const [first] = [await order(user), await order(other)]
      const ids = [first, await order(user), await order(user)]
      bodyOf(await payOrder(app, ids[1] ?? 0))
      const response = await send(app, `GET ${path}`)
      const each = await Promise.all(ids.map(async id => (await send(app, `GET /orders/${id}`)).body))
      assert.equal(response.body, `[${each.join(',')}]`)
      assert.equal(response.headers.get('link'), undefined)
      assertRefusal(await send(app, `GET /users/${absent}/orders`), 404, 'User not found')
    })

    it('R-ORD-12, R-API-5: GET /orders/<order_id>/items returns the items as they were ordered, paid or not', async () => {
      const items = [
        { name: 'Zoetrope', quantity: 10_000, price: 3 },
        { name: 'Abacus', quantity: 1, price: 1_000_000_000 },
        { name: 'Zoetrope', quantity: 1, price: 0 },
      ]
      const { id } = await createOrder(app, (await createUser(app)).id, items)
      const listed = bodyOf<{ id: number }[]>(await send(app, `GET /orders/${id}/items`))
      const ids = listed.map(item => item.id)
      const expected = items.map((item, index) => ({ id: ids[index], ...item }))
      assert.equal(JSON.stringify(listed), JSON.stringify(expected))
      assert.ok(ids.every(Number.isSafeInteger) && new Set(ids).size === 3)
      bodyOf(await payOrder(app, id))
      assert.deepEqual(bodyOf(await send(app, `GET /orders/${id}/items`)), listed)
    })

    it('R-ORD-15: GET /orders/<order_id>/tracking works after the order is shipped, and its number does not change', async () => {
      const user = await createUser(app)
      const [one, other] = [await createOrder(app, user.id), await createOrder(app, user.id)]
      assertRefusal(await send(app, `GET /orders/${one.id}/tracking`), 404, 'Order is not shipped yet')
      assertRefusal(await send(app, `GET /orders/${absent}/tracking`), 404, 'Order not found')
      for (const { id } of [one, other]) bodyOf(await payOrder(app, id))
      const response = await send(app, `GET /orders/${one.id}/tracking`)
      const record = bodyOf<Readonly<Record<string, unknown>>>(response)
      assert.deepEqual(Object.keys(record), ['order_id', 'carrier', 'number', 'shipped_at'])
      assert.equal(record.order_id, one.id)
      for (const text of [record.carrier, record.number]) assert.ok(typeof text === 'string' && text !== '')
      assert.match(String(record.shipped_at), instant)
      assert.equal((await send(app, `GET /orders/${one.id}/tracking`)).body, response.body)
      assert.notEqual(bodyOf<typeof record>(await send(app, `GET /orders/${other.id}/tracking`)).number, record.number)
    })

    it('R-ORD-3, R-ORD-9, R-ORD-10, R-ORD-13: POST /orders/<order_id>/payment pays the amount, whatever its body is, ships the order, which then has the links self and track, and links to the payment', async () => {
      const user = await createUser(app)
      const [order, bystander] = [await createOrder(app, user.id), await createOrder(app, user.id)]
      const payments = await countPayments(app.engine)
      const ignored = { amount: 1, order_id: bystander.id, items: [] }
      const response = await send(app, `POST /orders/${order.id}/payment`, ignored)
      assert.equal(response.status, 200)
      assert.equal(response.body, representation(order, 'shipped', user.id))
      assert.equal((await send(app, `GET /orders/${order.id}`)).body, response.body)
      assert.equal(wasReplayed(response), false)
      assert.equal(response.headers.get('location'), undefined)
      const payment = bodyOf<PaymentBody>(await send(app, `GET ${paymentLinkOf(response)}`))
      assert.deepEqual(Object.keys(payment), ['id', 'amount', 'order_id', 'created_at'])
      assert.deepEqual([payment.amount, payment.order_id], [order.amount, order.id])
      assert.match(payment.created_at, instant)
      assert.equal(paymentLinkOf(response), `/payments/${payment.id}`)
      assert.equal(await countPayments(app.engine), payments + 1)
      assert.deepEqual(bodyOf(await send(app, `GET /orders/${bystander.id}`)), bystander)
      await assertLedger(app.engine)
    })

    it('R-ORD-14, R-API-9: DELETE cancels an unpaid order with its items, and answers 204 each time', async () => {
      const user = await createUser(app)
      const [order, other] = [await createOrder(app, user.id), await createOrder(app, user.id)]
      for (let time = 0; time < 3; time++) {
        const { status, body, headers } = await send(app, `DELETE /orders/${order.id}`)
        assert.deepEqual([status, body, headers.get('content-type')], [204, '', undefined])
        for (const path of ['', '/items', '/tracking']) {
          assertRefusal(await send(app, `GET /orders/${order.id}${path}`), 404, 'Order not found')
        }
        assertRefusal(await payOrder(app, order.id), 404, 'Order not found')
      }
      assert.deepEqual(await app.engine.read(sql`select id from order_items where order_id = ${order.id}`), [])
      assert.deepEqual(bodyOf(await send(app, `GET /users/${user.id}/orders`)), [other])
      assert.equal(bodyOf<unknown[]>(await send(app, `GET /orders/${other.id}/items`)).length, 2)
      assert.equal((await send(app, `DELETE /orders/${absent}`)).status, 204)
    })

    it('R-ERR-10, R-ERR-13: an absent user, order or payment, and an id that none can have, answers 404, to DELETE 204 and to PUT 400, and nothing is affected', async () => {
      for (const id of [1, 9007199254740991]) await send(app, `PUT /users/${id}`, somebody())
      const before = await everything(app.engine)
      for (const bad of [String(absent), ...impossibleIds]) {
        const asked = {
          'User not found': [
            ...['', '/orders'].map(path => send(app, `GET /users/${bad}${path}`)),
            ...[{}, { name: 'Mallory' }].map(body => send(app, `PATCH /users/${bad}`, body)),
            send(app, `POST /users/${bad}/orders`, { items: someItems() }),
          ],
          'Order not found': [
            ...['', '/items', '/tracking'].map(path => send(app, `GET /orders/${bad}${path}`)),
            ...[undefined, 'a-key'].map(key => payOrder(app, bad, key)),
          ],
          'Payment not found': [send(app, `GET /payments/${bad}`)],
        }
        for (const [text, answers] of Object.entries(asked))
          for (const answer of await Promise.all(answers)) assertRefusal(answer, 404, text)
        for (const path of [`/users/${bad}`, `/orders/${bad}`]) {
          const deleted = await send(app, `DELETE ${path}`)
          assert.deepEqual([deleted.status, deleted.body], [204, ''], path)
        }
        if (bad !== String(absent)) assertRefusal(await send(app, `PUT /users/${bad}`, somebody()), 400)
      }
      assert.deepEqual(await everything(app.engine), before)
      const users = ['GET', 'PUT', 'PATCH', 'DELETE'].map(method => `${method} /users/`)
      const orders = ['GET /orders/', 'DELETE /orders/', 'GET /orders//items', 'POST /orders//payment']
      for (const line of [...users, ...orders, 'GET /payments/']) assertRefusal(await send(app, line), 404, 'Not found')
    })

    it('R-API-6: GET changes nothing and repeated it gives the same answer, and HEAD gives the same headers', async () => {
      const user = await createUser(app)
      const [pending, shipped] = [await createOrder(app, user.id), await createOrder(app, user.id)]
      const payment = paymentLinkOf(await payOrder(app, shipped.id))
      const ofUser = ['', '/orders', '/orders?limit=1'].map(path => `/users/${user.id}${path}`)
      const paths = [
        ...['/users', '/users?limit=1', ...ofUser, payment, `/orders/${shipped.id}/tracking`],
        ...[pending, shipped].flatMap(({ id }) => [`/orders/${id}`, `/orders/${id}/items`]),
        ...['/users/123456789', '/users?limit=0'],
      ]
      const before = await everything(app.engine)
      for (const path of paths) {
        const [one, again] = [await send(app, `GET ${path}`), await send(app, `GET ${path}`)]
        const head = await send(app, `HEAD ${path}`)
        assert.equal(again.body, one.body, path)
        assert.deepEqual([head.status, head.body], [one.status, ''], path)
        for (const name of ['content-type', 'content-length', 'link']) {
          assert.equal(again.headers.get(name), one.headers.get(name), path)
          assert.equal(head.headers.get(name), one.headers.get(name), path)
        }
      }
      assert.deepEqual(await everything(app.engine), before)
    })
  })

  test(`under the enforced policy admins still see the orders and payments of a deleted user, on ${kind.name}`, {
    skip: kind.skip,
  }, async () => {
    await using app = await startTestAppOn(kind, { ACCESS_POLICY: 'enforced' })
    const { email, ...user } = await createMember(app)
    const boss = await createUser(app, { password: 'right password' })
    await app.engine.write('setRole', { id: boss.id }, 'admin', 'a new version')
    const admin = await logIn(app, boss.email, 'right password')
    const order = () => createOrder(app, user.id, someItems(), user.token)
    const [pending, shipped] = [await order(), await order()]
    const ofOrder = paymentLinkOf(await payOrder(app, shipped.id, 'k', user.token))
    const paid = bodyOf<PaymentBody>(await pay(app, 'k', { amount: 12.34 }, user.token), 201)
    const paths = [
      ...[`/orders/${pending.id}`, `/orders/${pending.id}/items`, `/orders/${shipped.id}`],
      ...[`/orders/${shipped.id}/items`, `/orders/${shipped.id}/tracking`, ofOrder, `/payments/${paid.id}`],
    ]
    const read = async (path: string, token: string) => {
      const { status, body } = await send(app, `GET ${path}`, undefined, token)
      return [status, body]
    }
    const before = await Promise.all(paths.map(path => read(path, user.token)))
    assert.deepEqual(new Set(before.map(([status]) => status)), new Set([200]))
    assert.deepEqual(await Promise.all(paths.map(path => read(path, admin))), before)
    const list = `/users/${user.id}/orders`
    assert.equal(bodyOf<unknown[]>(await send(app, `GET ${list}`, undefined, admin)).length, 2)

    assert.equal((await send(app, `DELETE /users/${user.id}`, undefined, user.token)).status, 204)
    const after = before.map(([status, body]) => [status, String(body).replace(/"user_id":\d+/, '"user_id":null')])
    assert.deepEqual(await Promise.all(paths.map(path => read(path, admin))), after)
    assertRefusal(await send(app, `GET ${list}`, undefined, admin), 404, 'User not found')
    for (const path of paths) assertRefusal(await send(app, `GET ${path}`, undefined, user.token), 401)

    bodyOf(await send(app, `PUT /users/${user.id}`, { name: 'Heir', email, password: 'right password' }, admin), 201)
    const heir = await logIn(app, email, 'right password')
    assert.equal((await send(app, `GET ${list}`, undefined, heir)).body, '[]')
    for (const path of paths) assertRefusal(await send(app, `GET ${path}`, undefined, heir), 404)
    assertRefusal(await payOrder(app, pending.id, undefined, heir), 404, 'Order not found')
    assertRefusal(await payOrder(app, shipped.id, 'k', heir), 404, 'Order not found')
    assert.equal((await send(app, `DELETE /orders/${pending.id}`, undefined, heir)).status, 204)
    const own = await pay(app, 'k', { amount: 12.34 }, heir)
    assert.notEqual(bodyOf<PaymentBody>(own, 201).id, paid.id)
    assert.deepEqual(await Promise.all(paths.map(path => read(path, admin))), after)
    assert.equal(bodyOf<OrderBody>(await payOrder(app, pending.id, undefined, admin)).status, 'shipped')
    await assertLedger(app.engine)
  })
}

test('LINK_PREFIX is the prefix of every link in answers, and does not change the routes', async () => {
  const prefix = 'https://shop.example/v1'
  await using app = await startTestApp({ LINK_PREFIX: prefix })
  const user = await createUser(app)
  for (const line of ['POST /users', 'PUT /users/20', 'PUT /api/users/30']) {
    const { headers } = await send(app, line, somebody())
    assert.match(headers.get('location') ?? '', /^https:\/\/shop\.example\/v1\/users\/\d+$/)
  }
  const path = `/users/${user.id}/orders`
  const created = await send(app, `POST /api${path}`, { items: someItems() })
  const order = bodyOf<OrderBody>(created, 201)
  const { id } = order
  assert.equal(created.headers.get('location'), `${prefix}/orders/${id}`)
  assert.equal(created.body, representation(order, 'pending_payment', user.id, prefix))
  await createOrder(app, user.id)
  const page = await send(app, `GET ${path}?limit=1`)
  const list = `<${prefix}${path}?limit=1`
  assert.equal(page.headers.get('link'), `${list}&after=${id}>; rel="next", ${list}&offset=0>; rel="first"`)
  const paid = await payOrder(app, id)
  assert.equal(paid.body, representation(order, 'shipped', user.id, prefix))
  assert.equal(paymentLinkOf(paid), `${prefix}/payments/1`)
  assert.equal((await pay(app, newKey())).headers.get('location'), `${prefix}/payments/2`)
  for (const line of [`GET /v1/orders/${id}`, 'GET /v1/users']) assertRefusal(await send(app, line), 404, 'Not found')
})
