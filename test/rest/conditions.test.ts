import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import { Access } from '../../src/core/access.ts'
import { anonymous } from '../../src/core/actor.ts'
import type { Condition } from '../../src/core/condition.ts'
import type { UserStore } from '../../src/core/store.ts'
import { Users } from '../../src/core/users/operations.ts'
import { MemoryEventBus } from '../../src/events/memory-event-bus.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { engineKinds } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { type RawResponse, type Served, sendRaw } from '../support/http.ts'
import { cheapPasswords } from '../support/passwords.ts'
import { assertRefusal } from '../support/refusal.ts'
import {
  atOnce,
  bodyOf,
  createMember,
  createOrder,
  createUser,
  logIn,
  newKey,
  type OrderBody,
  type PaymentBody,
  pay,
  paymentLinkOf,
  payOrder,
  send,
  sendText,
  somebody,
  tally,
  wasReplayed,
} from '../support/rest.ts'
import { shared } from '../support/shared.ts'

type Headers = Readonly<Record<string, string>>

function tagOf({ headers }: RawResponse): string {
  return headers.get('etag') ?? assert.fail('no ETag')
}

function sendIf(app: Served, line: string, headers: Headers, body?: object, token?: string): Promise<RawResponse> {
  return sendText(app, line, body && JSON.stringify(body), token, headers)
}

for (const kind of engineKinds) {
  describe(`Conditional requests on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind))

    const tagNow = async (path: string) => tagOf(await send(app, `GET ${path}`))

    it('the ETag of a user changes with each field that is shown, and with nothing else', async () => {
      const user = await createUser(app, { password: 'right password' })
      const path = `/users/${user.id}`
      const tags = [await tagNow(path)]
      const token = await logIn(app, user.email, 'right password')
      const changes = [{ name: 'Other' }, { email: `x${user.email}` }, { age: 1 }, { avatar: 'https://x.example' }]
      for (const change of changes) {
        bodyOf(await send(app, `PATCH ${path}`, change))
        tags.push(await tagNow(path))
      }
      assert.equal(new Set(tags).size, tags.length)
      bodyOf(await send(app, `PATCH ${path}`, { password: 'other password' }, token))
      assert.equal(await tagNow(path), tags.at(-1))
      assert.equal(await tagNow(`/api${path}`), tags.at(-1))
      bodyOf(await send(app, `PUT ${path}`, { name: user.name, email: user.email }))
      assert.equal(await tagNow(path), tags[0], 'the same representation has the same tag')
      assert.notEqual(await tagNow(path), await tagNow(`/users/${(await createUser(app)).id}`))
    })

    it('If-None-Match answers 304 without a body while the resource is the same, for users, orders and payments', async () => {
      const member = await createMember(app)
      const order = await createOrder(app, member.id)
      const payment = bodyOf<PaymentBody>(await pay(app, newKey()), 201)
      for (const path of [`/users/${member.id}`, '/users/me', `/orders/${order.id}`, `/payments/${payment.id}`]) {
        for (const method of ['GET', 'HEAD']) {
          const ask = (condition: string) =>
            sendText(app, `${method} ${path}`, undefined, member.token, { 'if-none-match': condition })
          const tag = tagOf(await send(app, `${method} ${path}`, undefined, member.token))
          const size = Buffer.byteLength((await send(app, `GET ${path}`, undefined, member.token)).body)
          for (const condition of [tag, `W/${tag}`, '*', `"x", ${tag}`, `, "a,b" ,\t${tag},,`]) {
            const { status, body, headers } = await ask(condition)
            assert.deepEqual([status, body], [304, ''], `${method} ${path} ${condition}`)
            assert.deepEqual([headers.get('etag'), headers.get('cache-control')], [tag, 'private, no-cache'])
            const length = method === 'HEAD' ? String(size) : undefined
            assert.equal(headers.get('content-length'), length, `${method} ${path}`)
            assert.equal(headers.has('content-type'), method === 'HEAD')
          }
          // A malformed header is ignored, so the answer is complete.
          for (const condition of ['"x"', tag.slice(1, -1), `${tag} "x"`, `*, ${tag}`, '', '"', `w/${tag}`]) {
            assert.equal((await ask(condition)).status, 200, `${method} ${path} ${condition}`)
          }
        }
      }
      const stale = await tagNow(`/orders/${order.id}`)
      await payOrder(app, order.id)
      const now = await sendIf(app, `GET /orders/${order.id}`, { 'if-none-match': stale })
      assert.equal(bodyOf<{ status: string }>(now).status, 'shipped')
      assert.notEqual(tagOf(now), stale)
      assertRefusal(await sendIf(app, 'GET /users/4711', { 'if-none-match': '*' }), 404)
    })

    it('PUT, PATCH and DELETE of a user with an If-Match that does not match answer 412 and change nothing', async () => {
      const user = await createUser(app)
      const path = `/users/${user.id}`
      const old = await tagNow(path)
      const changed = bodyOf(await send(app, `PATCH ${path}`, { age: 50 }))
      const now = await tagNow(path)
      for (const condition of [old, '"x"', `W/${now}`, `${old}, W/${now}`, '""']) {
        const headers = { 'if-match': condition }
        assertRefusal(await sendIf(app, `PUT ${path}`, headers, somebody()), 412, 'The user has changed')
        assertRefusal(await sendIf(app, `PATCH ${path}`, headers, { age: 51 }), 412, 'The user has changed')
        assertRefusal(await sendIf(app, `DELETE ${path}`, headers), 412, 'The user has changed')
      }
      assert.deepEqual(bodyOf(await send(app, `GET ${path}`)), changed)
      assert.equal((await sendIf(app, `PATCH ${path}`, { 'if-match': `"x", ${now}` }, { age: 51 })).status, 200)
      assert.equal((await sendIf(app, `PUT ${path}`, { 'if-match': '*' }, somebody())).status, 200)
      assert.equal((await sendIf(app, `DELETE ${path}`, { 'if-match': await tagNow(path) })).status, 204)
      assertRefusal(await send(app, `GET ${path}`), 404)
    })

    it('of an absent user If-Match is not met: PUT answers 412 and creates nothing; PATCH stays 404 and DELETE 204', async () => {
      for (const condition of ['*', '"x"']) {
        const headers = { 'if-match': condition }
        assertRefusal(await sendIf(app, 'PUT /users/4711', headers, somebody()), 412, 'The user has changed')
        assertRefusal(await sendIf(app, 'PATCH /users/4711', headers, { age: 1 }), 404, 'User not found')
        assert.equal((await sendIf(app, 'DELETE /users/4711', headers)).status, 204)
      }
    })

    it('of many concurrent PUT requests with If-None-Match: * exactly one creates the user, and the others answer 412', async () => {
      const put = (condition: string) => sendIf(app, 'PUT /users/5555', { 'if-none-match': condition }, somebody())
      const answers = await atOnce(32, () => put('*'))
      assert.deepEqual(tally(answers), { 201: 1, 412: 31 })
      const created = answers.find(({ status }) => status === 201)
      assert.equal((await send(app, 'GET /users/5555')).body, created?.body)
      const tag = await tagNow('/users/5555')
      for (const condition of ['*', tag, `W/${tag}`])
        assertRefusal(await put(condition), 412, 'The user exists already')
      assert.equal((await put('"x"')).status, 200)
    })

    it('DELETE of an order whose condition is not met answers 412, also once the order is paid', async () => {
      const user = await createUser(app)
      const order = await createOrder(app, user.id)
      const path = `/orders/${order.id}`
      const old = await tagNow(path)
      assertRefusal(await sendIf(app, `DELETE ${path}`, { 'if-match': '"x"' }), 412, 'The order has changed')
      await payOrder(app, order.id)
      assertRefusal(await sendIf(app, `DELETE ${path}`, { 'if-match': old }), 412, 'The order has changed')
      const now = { 'if-match': await tagNow(path) }
      assertRefusal(await sendIf(app, `DELETE ${path}`, now), 409, 'Order is already shipped')
      const other = await createOrder(app, user.id)
      const tag = await tagNow(`/orders/${other.id}`)
      assertRefusal(
        await sendIf(app, `DELETE /orders/${other.id}`, { 'if-none-match': tag }),
        412,
        'The order exists already',
      )
      assert.equal((await sendIf(app, `DELETE /orders/${other.id}`, { 'if-match': tag })).status, 204)
      assert.equal((await sendIf(app, `DELETE /orders/${other.id}`, { 'if-match': tag })).status, 204)
    })

    it('the payment of an order whose condition is not met answers 412, pays nothing and uses up no key, which once it has paid is replayed whatever the condition is', async () => {
      const newOrder = async () => (await createOrder(app, (await createUser(app)).id)).id
      const [id, other, key] = [await newOrder(), await newOrder(), newKey()]
      const payIf = (headers: Headers, each?: string) => payOrder(app, id, each, undefined, headers)
      const tag = await tagNow(`/orders/${id}`)
      for (const each of [undefined, key]) {
        for (const condition of ['"x"', `W/${tag}`])
          assertRefusal(await payIf({ 'if-match': condition }, each), 412, 'The order has changed')
        for (const condition of ['*', tag])
          assertRefusal(await payIf({ 'if-none-match': condition }, each), 412, 'The order exists already')
      }
      assert.equal(bodyOf<OrderBody>(await send(app, `GET /orders/${id}`)).status, 'pending_payment')
      const paid = await payIf({ 'if-match': `"x", ${tag}` }, key)
      assert.deepEqual([bodyOf<OrderBody>(paid).status, wasReplayed(paid)], ['shipped', false])
      for (const condition of ['"x"', 'malformed', '', '*', tag]) {
        const again = await payIf({ 'if-match': condition }, key)
        assert.deepEqual([again.status, wasReplayed(again), again.body], [200, true, paid.body], condition)
        assert.equal(paymentLinkOf(again), paymentLinkOf(paid))
      }
      for (const each of [undefined, newKey()]) {
        assertRefusal(await payIf({ 'if-match': tag }, each), 412, 'The order has changed')
        assertRefusal(await payIf({ 'if-match': await tagNow(`/orders/${id}`) }, each), 409, 'Order is already paid')
      }
      for (const condition of ['*', '"x"', tag])
        assertRefusal(await payOrder(app, 4711, newKey(), undefined, { 'if-match': condition }), 404, 'Order not found')
      const met = { 'if-match': '*', 'if-none-match': '"x"' }
      assert.equal(bodyOf<OrderBody>(await payOrder(app, other, newKey(), undefined, met)).status, 'shipped')
    })

    it('of concurrent payments with one key, those whose condition is not met do not refuse the others', async () => {
      const { id } = await createOrder(app, (await createUser(app)).id)
      const [key, tag] = [newKey(), await tagNow(`/orders/${id}`)]
      const conditions = ['"x"', 'malformed', tag]
      const answers = await atOnce(30, index =>
        payOrder(app, id, key, undefined, { 'if-match': conditions[index % 3] ?? '' }),
      )
      for (const [index, answer] of answers.entries()) {
        const refusal = [412, 400][index % 3]
        if (answer.status !== 200) assert.equal(answer.status, refusal)
      }
      const paid = answers.filter(({ status }) => status === 200)
      assert.equal(paid.filter(answer => !wasReplayed(answer)).length, 1)
      assert.equal(new Set(paid.map(paymentLinkOf)).size, 1)
    })

    it('writers that read, change and write with If-Match lose no acknowledged update', async () => {
      const [writers, tries] = inForm([16, 2], [64, 64])
      const user = await createUser(app, { age: 0 })
      const path = `/users/${user.id}`
      /** The acknowledged writes of one writer, at most one. */
      const increment = async (): Promise<number> => {
        for (let count = 0; count < tries; count++) {
          const read = await send(app, `GET ${path}`)
          const { name, email, age = 0 } = bodyOf(read)
          const written = await sendIf(app, `PUT ${path}`, { 'if-match': tagOf(read) }, { name, email, age: age + 1 })
          if (written.status === 200) return 1
          assertRefusal(written, 412, 'The user has changed')
        }
        return 0
      }
      const acknowledged = (await atOnce(writers, increment)).reduce((sum, one) => sum + one)
      assert.equal(bodyOf(await send(app, `GET ${path}`)).age, acknowledged)
      assert.ok(acknowledged > 0 && acknowledged < writers * tries)
    })
  })
}

describe('The headers of conditional requests', () => {
  const app = shared(() => startTestApp())

  const tagNow = async (path: string) => tagOf(await send(app, `GET ${path}`))

  it('a malformed condition of a write is refused with 400, after the body, and changes nothing', async () => {
    const user = await createUser(app)
    const path = `/users/${user.id}`
    const order = await createOrder(app, user.id)
    for (const name of ['If-Match', 'If-None-Match']) {
      for (const condition of ['', 'x', '"', '"a" "b"', '*, "a"', 'W/', ',', `"${'a'.repeat(9_000)}`]) {
        const headers = { [name]: condition }
        const text = `${name} must be * or a list of entity tags in quotes`
        assertRefusal(await sendIf(app, `PUT ${path}`, headers, somebody()), 400, text)
        assertRefusal(await sendIf(app, `PATCH ${path}`, headers, { age: 1 }), 400, text)
        assertRefusal(await sendIf(app, `DELETE ${path}`, headers), 400, text)
        assertRefusal(await sendIf(app, `DELETE /orders/${order.id}`, headers), 400, text)
        for (const id of [order.id, 4711, 'abc']) {
          for (const key of [undefined, newKey()])
            assertRefusal(await payOrder(app, id, key, undefined, headers), 400, text)
        }
      }
    }
    assertRefusal(await sendIf(app, `PUT ${path}`, { 'if-match': 'x' }, {}), 400, 'Name and email required')
    assert.deepEqual(bodyOf(await send(app, `GET ${path}`)), user)
    assert.equal(bodyOf<OrderBody>(await send(app, `GET /orders/${order.id}`)).status, 'pending_payment')
  })

  it('a header that is sent twice counts as one list', async () => {
    const user = await createUser(app)
    const tag = await tagNow(`/users/${user.id}`)
    const request = (line: string, name: string) =>
      `${line} HTTP/1.1\r\nHost: localhost\r\n${name}: "x"\r\n${name}: ${tag}\r\n\r\n`
    assert.equal((await sendRaw(app.port, request(`GET /users/${user.id}`, 'If-None-Match'))).status, 304)
    assert.equal((await sendRaw(app.port, request(`DELETE /users/${user.id}`, 'If-Match'))).status, 204)
  })

  it('a long header of blanks or of many tags takes hardly any CPU time', async () => {
    const user = await createUser(app)
    const blanks = ' '.repeat(12_000)
    for (const condition of [`"a"${blanks}x`, blanks, '"",'.repeat(4_000), ','.repeat(12_000)]) {
      const request = `GET /users/${user.id} HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: ${condition}\r\n\r\n`
      const costOf = async () => {
        const before = process.cpuUsage()
        assert.equal((await sendRaw(app.port, request)).status, 200)
        return process.cpuUsage(before).user
      }
      const costs = [await costOf(), await costOf(), await costOf()]
      // A pattern that goes back once for each blank takes 300 ms.
      assert.ok(Math.min(...costs) < 100_000, `${costs} µs`)
    }
  })
})

test('orders under another prefix of links have other tags, and users have the same', async () => {
  const clock = new TestClock() // so that the orders of both have the same time
  await using plain = await startTestApp({ DEMO_DATA: 'true' }, { clock })
  await using shop = await startTestApp({ DEMO_DATA: 'true', LINK_PREFIX: '/shop' }, { clock })
  const tags = async (path: string) => [tagOf(await send(plain, `GET ${path}`)), tagOf(await send(shop, `GET ${path}`))]
  const [user, same] = await tags('/users/1')
  assert.equal(user, same)
  const [order = '', other = ''] = await tags('/orders/1')
  assert.ok(other.startsWith(order.replace(/"$/, '.')), `${order} ${other}`)
  assert.equal((await sendIf(shop, 'GET /orders/1', { 'if-none-match': order })).status, 200)
  assert.equal((await sendIf(shop, 'GET /orders/1', { 'if-none-match': other })).status, 304)
  for (const tag of [order, other.replace(/."$/, '."')])
    assertRefusal(await sendIf(shop, 'DELETE /orders/1', { 'if-match': tag }), 412, 'The order has changed')
  const [pending] = bodyOf<OrderBody[]>(await send(shop, 'GET /orders?status=pending_payment&after=1&limit=1'))
  const payIf = (tag: string) => payOrder(shop, pending?.id ?? 0, undefined, undefined, { 'if-match': tag })
  const [plainTag = '', shopTag = ''] = await tags(`/orders/${pending?.id}`)
  assertRefusal(await payIf(plainTag), 412, 'The order has changed')
  assert.equal((await payIf(shopTag)).status, 200)
  assert.equal((await sendIf(shop, 'DELETE /orders/1', { 'if-match': other })).status, 204)
})

test('R-ERR-9: under the enforced policy a tag shows nothing to callers without access', async () => {
  await using app = await startTestApp({ ACCESS_POLICY: 'enforced' })
  const [owner, other] = [await createMember(app), await createMember(app)]
  const order = await createOrder(app, owner.id, undefined, owner.token)
  for (const [path, refused] of [
    [`/users/${owner.id}`, 403],
    [`/orders/${order.id}`, 404],
  ] as const) {
    const tag = tagOf(await send(app, `GET ${path}`, undefined, owner.token))
    for (const condition of [tag, '*', '"x"', 'malformed']) {
      assertRefusal(await sendIf(app, `GET ${path}`, { 'if-none-match': condition }), 401)
      assertRefusal(await sendIf(app, `GET ${path}`, { 'if-none-match': condition }, undefined, other.token), refused)
      assertRefusal(await sendIf(app, `DELETE ${path}`, { 'if-match': condition }), 401)
      for (const method of refused === 403 ? ['PUT', 'PATCH', 'DELETE'] : []) {
        const body = method === 'DELETE' ? undefined : somebody()
        assertRefusal(await sendIf(app, `${method} ${path}`, { 'if-match': condition }, body, other.token), 403)
      }
      if (refused === 403 || condition === 'malformed') continue
      // The order looks absent: its deletion succeeds and does nothing, whatever the tag is, and its payment answers 404.
      assert.equal((await sendIf(app, `DELETE ${path}`, { 'if-match': condition }, undefined, other.token)).status, 204)
      assertRefusal(await payOrder(app, order.id, newKey(), other.token, { 'if-match': condition }), 404)
      assertRefusal(await payOrder(app, order.id, newKey(), undefined, { 'if-match': condition }), 401)
    }
    assert.equal((await send(app, `GET ${path}`, undefined, owner.token)).status, 200)
  }
})

test('the condition of a deletion in several steps is checked in the first step only', async () => {
  const asked: Condition[] = []
  const store: Pick<UserStore, 'deleteUser'> = {
    deleteUser: async (_id, _actor, condition) => (asked.push(condition) < 3 ? 'more' : 'gone'),
  }
  const users = new Users({
    store: store as UserStore,
    access: new Access('open'),
    passwords: cheapPasswords(),
    randomness: { id: () => 'id' },
    bus: new MemoryEventBus(),
  })
  await users.delete(anonymous, 1, () => ({ match: ['revision'] }))
  assert.deepEqual(asked, [{ match: ['revision'] }, {}, {}])
})
