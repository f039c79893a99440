import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, it } from 'node:test'
import { backoff } from '../../client/src/clock.ts'
import { actionsOf, type DuetError, etag, isDuetError, orders, payments } from '../../client/src/index.ts'
import { catalogue } from '../../src/storage/verbs.ts'
import { Wire } from '../faults/wire.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { sqlite } from '../support/engines.ts'
import { rowsOf } from '../support/graphql.ts'
import { createUser, someItems } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { waitUntil, within } from '../support/wait.ts'
import {
  connectTo,
  InstantClock,
  interceptedFetch,
  ManualClock,
  neverAnswers,
  noNetwork,
  TabStorage,
  tokenFor,
} from './support.ts'

describe('Payments and orders of the client', () => {
  const app = shared(() => startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }))

  /** The number of payments with this amount. */
  async function made(amount: number): Promise<number> {
    await using engine = app.database.open(catalogue)
    const [row] = await rowsOf(engine, `select count(*) from payments where amount_cents = ${Math.round(amount * 100)}`)
    return Number(row?.[0])
  }

  /** A client whose next answers can be lost. */
  async function lossy() {
    const wire = await Wire.to(new URL(app.url))
    const clock = new InstantClock()
    const client = connectTo({ url: `http://127.0.0.1:${wire.port}` }, { clock })
    let losses = 0
    const lose = (answers: number) => {
      losses = answers
    }
    wire.fromServer = (_data, ends) => {
      if (losses-- <= 0) return 'pass'
      ends.client.resetAndDestroy()
      return 'keep'
    }
    return { ...client, clock, lose, [Symbol.asyncDispose]: () => wire[Symbol.asyncDispose]() }
  }

  it('are made once even if all answers but the last are lost, and are marked as a replay', async () => {
    await using client = await lossy()
    client.lose(3)
    const { signal } = new AbortController()
    const { attempts, key, payment, replayed } = await payments(client.duet).pay(71.25, { signal })
    assert.deepEqual(getEventListeners(signal, 'abort'), [])
    assert.deepEqual([attempts, replayed, payment.amount], [4, true, 71.25])
    assert.equal(await made(71.25), 1)
    const seen = client.requests.map(({ attempt, status, replayed: again }) => [attempt, status, again].join())
    assert.deepEqual(seen, ['1,,false', '2,,false', '3,,false', '4,200,true'])
    assert.deepEqual(new Set(client.requests.map(({ headers }) => headers['idempotency-key'])), new Set([key]))
    const [first = 0, second = 0, third = 0] = client.clock.pauses
    assert.ok(first >= 125 && first <= 250 && second >= 250 && second <= 500 && third >= 500 && third <= 1000)
    const longest = Array.from({ length: 20 }, () => backoff(30))
    assert.ok(Math.max(...longest) <= 30_000 && Math.min(...longest) >= 15_000, String(longest))
    assert.ok(new Set(longest).size > 1, 'not all clients come back at once')
  })

  it('of all users are listed, newest first, with their times and owners', async () => {
    using client = connectTo(app)
    const [ann, bob] = [await createUser(app), await createUser(app)]
    const { all, create, follow, list } = orders(client.duet)
    const placed = [
      await create(ann.id, someItems()),
      await create(bob.id, someItems()),
      await create(ann.id, someItems()),
    ]
    assert.deepEqual(await all({ sort: '-id', limit: 2 }).toArray(3), placed.toReversed())
    assert.deepEqual(await list(ann.id, { sort: '-id' }).toArray(), [placed[2], placed[0]])
    const owners = placed.map(({ user_id }) => user_id)
    assert.deepEqual(owners, [ann.id, bob.id, ann.id])
    const { order } = await follow(placed[1] ?? assert.fail(), 'pay')
    assert.deepEqual(await all({ status: 'shipped', sort: '-id' }).toArray(1), [order])
    const { payment } = await payments(client.duet).pay(70)
    const newest = await payments(client.duet).list({ sort: '-id', limit: 1 }).toArray(2)
    assert.deepEqual([newest[0], newest[1]?.order_id], [payment, order.id])
  })

  it('have a unique key, or the key of the caller, and are made once per key', async () => {
    using client = connectTo(app)
    const { get, pay } = payments(client.duet)
    const first = await pay(72)
    const second = await pay(72)
    assert.notEqual(first.key, second.key)
    const refused = connectTo(app, { fetch: async () => Response.json({}, { status: 400 }) }).duet
    for (let count = 0; count < 20; count++)
      await assert.rejects(payments(refused).pay(72), ({ key }: DuetError) => /^[0-9a-f]{32}$/.test(key ?? ''))
    assert.deepEqual([first.replayed, first.attempts], [false, 1])
    const again = await pay(72, { key: first.key })
    assert.deepEqual([again.replayed, again.payment], [true, first.payment])
    assert.equal(await made(72), 2)
    const read = await get(first.payment.id)
    assert.match(read[etag] ?? '', /^"/)
    assert.deepEqual({ ...read, [etag]: undefined }, { ...first.payment, [etag]: undefined })
  })

  it('that fail permanently have their key in the error, and can be repeated later with it', async () => {
    let isDown = true
    const clock = new InstantClock()
    const fetch = interceptedFetch(() => (isDown ? noNetwork() : undefined))
    using client = connectTo(app, { fetch, clock })
    const { pay } = payments(client.duet)
    const failure: DuetError = await pay(73).then(
      () => assert.fail(),
      error => error,
    )
    assert.deepEqual([failure.kind, typeof failure.key], ['offline', 'string'])
    assert.equal(client.requests.length, 6)
    assert.equal(clock.pauses.length, 5)
    isDown = false
    const { key = '' } = failure
    assert.equal((await pay(73, { key })).replayed, false)
    assert.equal(await made(73), 1)
  })

  it('are repeated with their key after a 5xx or an answer of somebody else, but not after a refusal that would be the same again', async () => {
    const failed = (status: number) => () => {
      const headers = { 'retry-after': new Date().toUTCString() } // some gateways write a date
      return Response.json({ error: 'Failed' }, { status, headers })
    }
    for (const answers of [
      [503, 500, 502].map(failed),
      [
        () => new Response('<html>', { headers: { 'content-type': 'text/html' } }), // a network that wants a login
        () => new Response(null, { status: 204 }),
        () => Response.json(null),
        () => new Response(null, { status: 302, headers: { location: 'http://portal.test/' } }),
      ],
    ]) {
      using client = connectTo(app, { fetch: interceptedFetch(() => answers.shift()?.()), clock: new InstantClock() })
      const expected = answers.length + 1
      const { attempts, payment } = await payments(client.duet).pay(74)
      assert.deepEqual([attempts, payment.amount], [expected, 74])
      assert.equal(new Set(client.requests.map(({ headers }) => headers['idempotency-key'])).size, 1)
    }
    using client = connectTo(app, { clock: new InstantClock() })
    await assert.rejects(payments(client.duet).pay(-1), ({ kind, key, status, requestId, body, cause }: DuetError) => {
      const { requestId: id } = client.requests[0] ?? assert.fail()
      assert.deepEqual([kind, typeof key, status, requestId, typeof body], ['badInput', 'string', 400, id, 'object'])
      return isDuetError(cause, 'badInput')
    })
    assert.equal(client.requests.length, 1)
  })

  it('wait as long as the rate limit requires, if that is short', async () => {
    const serverClock = new TestClock()
    const limit = { RATE_LIMIT_MAX: '1', RATE_LIMIT_PATHS: '/payments', RATE_LIMIT_WINDOW_MS: '8000' }
    await using limited = await startTestApp(limit, { clock: serverClock })
    const clock = new ManualClock(0)
    using client = connectTo(limited, { clock })
    const { pay } = payments(client.duet)
    await pay(75)
    const paying = pay(75)
    await waitUntil(() => clock.due.length === 1 && client.requests.length === 2)
    const [pause = 0] = clock.due
    assert.ok(pause >= 8000 && pause <= 8250, String(pause))
    serverClock.pass(pause)
    clock.pass(pause)
    assert.equal((await paying).attempts, 2)

    // At most 20 seconds, with the own pause.
    for (const [retryAfter, attempts] of [
      [19, 4],
      [20, 1],
    ] as const) {
      const headers = { 'retry-after': String(retryAfter) }
      const busy = interceptedFetch(() => Response.json({}, { status: 429, headers }))
      using patient = connectTo(limited, { fetch: busy, clock: new InstantClock() })
      await assert.rejects(payments(patient.duet).pay(75), { kind: 'rateLimited', retryAfter })
      assert.equal(patient.requests.length, attempts)
    }
  })

  it('are not repeated as another user, because that would be another payment; but after a renewal', async () => {
    for (const [first, next, sent] of [
      [tokenFor(1), undefined, 1],
      [tokenFor(1), tokenFor(2), 1],
      [undefined, tokenFor(2), 1],
      [tokenFor(1), tokenFor(1, 10), 2],
    ] as const) {
      for (const isEarly of [true, false]) {
        const clock = new ManualClock(0)
        const storage = new TabStorage(first)
        const fetch = async () => {
          if (isEarly) storage.tell(next)
          return noNetwork()
        }
        using client = connectTo({ url: 'http://duet.test' }, { clock, storage, fetch })
        const stop = new AbortController()
        const paying = within(payments(client.duet).pay(1, { key: 'k', signal: stop.signal }), 'the end')
        const ended = assert.rejects(paying, sent === 1 ? { kind: 'offline', key: 'k' } : /given up/)
        await new Promise(setImmediate)
        if (!isEarly) storage.tell(next) // during the pause
        clock.pass(250)
        await new Promise(setImmediate)
        assert.equal(client.requests.length, sent)
        stop.abort(new Error('given up'))
        await ended
      }
    }
  })

  it('are no longer repeated after the caller aborts', async () => {
    const stop = new AbortController()
    const clock = new ManualClock(0)
    const answers = [noNetwork, noNetwork, neverAnswers]
    const fetch: typeof globalThis.fetch = (...asked) => (answers.shift() ?? assert.fail())(...asked)
    using client = connectTo(app, { fetch, clock })
    const paying = payments(client.duet).pay(77, { signal: stop.signal })
    await waitUntil(() => client.requests.length === 1 && clock.due.length === 1)
    stop.abort(new Error('given up'))
    await assert.rejects(within(paying, 'the end'), /given up/)
    assert.deepEqual(clock.due, [])

    using second = connectTo(app, { fetch, clock: new InstantClock() })
    const again = new AbortController()
    const repeated = payments(second.duet).pay(77, { signal: again.signal })
    await waitUntil(() => answers.length === 0)
    again.abort(new Error('given up'))
    await assert.rejects(within(repeated, 'the end of the second attempt'), /given up/)
  })

  it('of an order are made and tracked by its links, and by nothing else', async () => {
    using client = connectTo(app)
    const { create, follow, get, items, list } = orders(client.duet)
    const { id: userId } = await createUser(app)
    const wanted = someItems()
    const order = await create(userId, wanted)
    assert.deepEqual([order.status, actionsOf(order)], ['pending_payment', ['pay', 'cancel']])
    assert.ok(!('_links' in order))
    const bought = (await items(order)).map(({ name, quantity, price }) => ({ name, quantity, price }))
    assert.deepEqual(bought, wanted)
    client.requests.length = 0
    const noLink = { kind: 'conflict', status: undefined, message: 'The order has no link to track it.' }
    await assert.rejects(follow(order, 'track'), noLink)
    assert.deepEqual(client.requests, [], 'without a link nothing is sent')

    const chosen = { key: `order-${order.id}` }
    const { order: paid, payment = assert.fail(), replayed, key } = await follow(order, 'pay', chosen)
    assert.deepEqual([paid.status, actionsOf(paid), replayed, key], ['shipped', ['track'], false, chosen.key])
    const { amount, order_id } = await payments(client.duet).get(payment)
    assert.deepEqual([amount, order_id], [order.amount, order.id])
    assert.equal((await follow(paid, 'track')).order_id, order.id)
    await assert.rejects(follow(order, 'pay'), { kind: 'conflict', status: 409, message: 'Order is already paid' })
    assert.deepEqual(await follow(order, 'self'), await get(order.id))

    const open = await create(userId, someItems())
    assert.deepEqual(await list(userId, { status: 'pending_payment' }).toArray(), [open])
    assert.deepEqual(await list(userId, { limit: 1 }).toArray(), [paid, open])
  })

  it('of an order are made once although the answer is lost', async () => {
    await using client = await lossy()
    const { create, follow, get } = orders(client.duet)
    const order = await get((await create((await createUser(app)).id, someItems())).id)
    client.lose(1)
    const paid = await follow(order, 'pay')
    assert.deepEqual([paid.attempts, paid.replayed, paid.order.status], [2, true, 'shipped'])
  })

  it('of orders, and their cancellations, happen only in the state in which they were read', async () => {
    using client = connectTo(app)
    const { create, follow, get } = orders(client.duet)
    const { id: userId } = await createUser(app)
    const { id } = await create(userId, someItems())
    const read = await get(id)
    assert.equal((await follow(read, 'pay')).order[etag], undefined)
    for (const name of ['pay', 'cancel'] as const) {
      await assert.rejects(follow(read, name), { kind: 'conflict', status: 412, message: 'The order has changed' })
    }
    const other = await get((await create(userId, someItems())).id)
    client.requests.length = 0
    assert.equal(await follow(other, 'cancel'), undefined)
    assert.equal(client.requests[0]?.headers['if-match'], other[etag])
    await assert.rejects(get(other.id), { kind: 'notFound' })
  })
})
