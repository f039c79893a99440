import assert from 'node:assert/strict'
import { getEventListeners, once } from 'node:events'
import { createServer } from 'node:http'
import { describe, it } from 'node:test'
import {
  type Duet,
  type DuetError,
  etag,
  graphql,
  isDuetError,
  mutate,
  type Order,
  orders,
  passwordResets,
  payments,
  query,
  users,
} from '../../client/src/index.ts'
import { errorOf } from '../../client/src/refusals.ts'
import { startTestApp } from '../support/app.ts'
import { freePort } from '../support/ports.ts'
import { createMember, createUser, somebody, someItems } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { within } from '../support/wait.ts'
import {
  connectTo,
  InstantClock,
  interceptedFetch,
  ManualClock,
  neverAnswers,
  TabStorage,
  tokenFor,
  uncaughtDuring,
} from './support.ts'

const env = { LOGIN_LIMIT_MAX: '0' }

const links = {
  self: { href: '/orders/1' },
  track: { href: '/orders/1/tracking' },
  pay: { href: '/orders/1/payment', method: 'POST' },
  cancel: { href: '/orders/1', method: 'DELETE' },
}
const order = { id: 1, links } as Order

/** All calls that can be ended by a signal. */
const readingCalls: Readonly<Record<string, (duet: Duet, signal: AbortSignal) => Promise<unknown>>> = {
  'a request': (duet, signal) => duet.request('GET', '/users', { signal, expect: 'json' }),
  'graphql().query': (duet, signal) => graphql(duet).query('{ me { id } }', {}, { signal }),
  'graphql().mutate': (duet, signal) => graphql(duet).mutate('mutation { a }', {}, { signal }),
  query: (duet, signal) => query(duet, { me: true }, { signal }),
  mutate: (duet, signal) => mutate(duet, { deletePost: { $: { id: 1 } } }, { signal }),
  'users().me': (duet, signal) => users(duet).me({ signal }),
  'users().get': (duet, signal) => users(duet).get(1, { signal }),
  'users().list': (duet, signal) => users(duet).list({ signal }).toArray(),
  'users().role': (duet, signal) => users(duet).role(1, { signal }),
  'orders().get': (duet, signal) => orders(duet).get(1, { signal }),
  'orders().list': (duet, signal) => orders(duet).list(1, { signal }).first(),
  'orders().all': (duet, signal) => orders(duet).all({ signal }).first(),
  'the order itself': (duet, signal) => orders(duet).follow(order, 'self', { signal }),
  'the way of an order': (duet, signal) => orders(duet).follow(order, 'track', { signal }),
  'a payment of an order': (duet, signal) => orders(duet).follow(order, 'pay', { signal }),
  'the end of an order': (duet, signal) => orders(duet).follow(order, 'cancel', { signal }),
  'payments().list': (duet, signal) => payments(duet).list({ signal }).first(),
  'payments().get': (duet, signal) => payments(duet).get(1, { signal }),
  'payments().pay': (duet, signal) => payments(duet).pay(1, { signal }),
}
const writingCalls: Readonly<Record<string, (duet: Duet) => Promise<unknown>>> = {
  signIn: duet => duet.signIn({ email: 'a@example.com', password: 'secret' }),
  'users().create': duet => users(duet).create({ name: 'A', email: 'a@example.com' }),
  'users().replace': duet => users(duet).replace(1, { name: 'A', email: 'a@example.com' }),
  'users().update': duet => users(duet).update(1, {}),
  'users().delete': duet => users(duet).delete(1),
  'users().setRole': duet => users(duet).setRole(1, 'admin'),
  'orders().create': duet => orders(duet).create(1, []),
  'orders().items': duet => orders(duet).items(order),
  'passwordResets().request': duet => passwordResets(duet).request('a@example.com'),
  'passwordResets().set': duet => passwordResets(duet).set('secret', 'a new password'),
}

describe('Requests of the client', () => {
  const app = shared(() => startTestApp({ ...env, RATE_LIMIT_MAX: '0' }))

  it('fail with one of a small set of error kinds', async () => {
    await using app = await startTestApp({ ...env, RATE_LIMIT_MAX: '0', ACCESS_POLICY: 'enforced' })
    const member = await createMember(app)
    using client = connectTo(app)
    const { duet } = client
    const { create, get, me, update } = users(duet)
    const { query: read } = graphql(duet)
    await assert.rejects(me(), { kind: 'unauthenticated', code: undefined, retryAfter: undefined })
    await assert.rejects(read('{ me { id } }'), { kind: 'unauthenticated', status: 401, code: 'UNAUTHENTICATED' })
    await duet.signIn({ email: member.email, password: 'right password' })
    await assert.rejects(get(1_000_000), { kind: 'forbidden', status: 403 })
    await assert.rejects(orders(duet).get(1_000_000), { kind: 'notFound', message: 'Order not found' })
    await assert.rejects(update(member.id, { age: -1 }), { kind: 'badInput', status: 400 })
    await assert.rejects(create({ ...somebody(), email: member.email, password: 'long enough' }), {
      kind: 'conflict',
      status: 409,
    })
    await assert.rejects(read('{ posts(limit: 1000) { id title } }'), (error: DuetError) => {
      assert.deepEqual([error.kind, error.status, error.code], ['badInput', 400, 'COMPLEXITY_LIMIT_EXCEEDED'])
      const { errors } = error.body as { errors: { extensions: object }[] }
      assert.deepEqual(errors[0]?.extensions, { code: error.code, cost: 2000, limit: 1000 })
      return true
    })
    await assert.rejects(duet.request('POST', '/nothing'), { kind: 'notFound', message: 'Not found' })
    await app.app.toggleMaintenance()
    await assert.rejects(me(), (error: DuetError) => {
      assert.deepEqual([error.kind, error.status, typeof error.retryAfter], ['server', 503, 'number'])
      return isDuetError(error) && isDuetError(error, 'server') && !isDuetError(error, 'offline')
    })
    assert.ok(!isDuetError(new Error('another')))
  })

  it('fail with the same kinds over a socket, where a code stands for the status', () => {
    const kinds = {
      UNAUTHENTICATED: 'unauthenticated',
      FORBIDDEN: 'forbidden',
      NOT_FOUND: 'notFound',
      CONFLICT: 'conflict',
      RATE_LIMITED: 'rateLimited',
      INTERNAL_SERVER_ERROR: 'server',
      SERVICE_UNAVAILABLE: 'server',
      COMPLEXITY_LIMIT_EXCEEDED: 'badInput',
    }
    for (const [code, kind] of Object.entries(kinds)) {
      const errors = [{ message: 'Refused', extensions: { code } }]
      const error = errorOf(errors, 'none', { body: errors })
      assert.deepEqual([error.kind, error.code, error.message, error.status], [kind, code, 'Refused', undefined])
      assert.equal(errorOf(errors, 'none', { status: 502, body: errors }).kind, 'server', 'the status decides')
    }
    const { kind, message, code } = errorOf(undefined, 'none', { body: undefined })
    assert.deepEqual([kind, message, code], ['badInput', 'none', undefined])
  })

  it('never succeed with the answer of somebody else, such as a network that wants a login', async () => {
    const redirect = { type: 'opaqueredirect', status: 0, ok: false, headers: new Headers(), text: async () => '' }
    for (const answer of [() => new Response('<html>'), () => redirect as Response]) {
      using client = connectTo({ url: 'http://duet.test' }, { fetch: async () => answer(), clock: new InstantClock() })
      for (const [name, call] of Object.entries({ ...readingCalls, ...writingCalls }))
        await assert.rejects(call(client.duet, new AbortController().signal), { kind: 'server' }, name)
    }
    using moved = connectTo({ url: 'http://duet.test' }, { fetch: async () => redirect as Response })
    await assert.rejects(moved.duet.request('GET', '/metrics'), { kind: 'server' })
    const headers = { 'x-request-id': 'r1' }
    const problem = { 'content-type': 'application/problem+json' }
    const errors = ['first', 'second'].map(message => ({ message, extensions: { code: message } }))
    for (const [answer, error] of [
      [
        new Response('<html>', { headers }),
        { status: 200, requestId: 'r1', message: 'The answer is not from the service.' },
      ],
      [
        new Response('<html>', { headers: { ...headers, 'content-type': 'application/json' } }),
        { status: 200, requestId: 'r1', message: 'The answer is not JSON.' },
      ],
      [
        new Response('<html>', { status: 502, headers: { 'retry-after': '0' } }),
        { status: 502, retryAfter: 0, message: 'The service answered 502.' },
      ],
      [Response.json({ error: 'Failed' }, { status: 500, headers: problem }), { status: 500, message: 'Failed' }],
      [Response.json(null, { status: 500 }), { status: 500, message: 'The service answered 500.' }],
      [Response.json({ errors }, { status: 500 }), { status: 500, message: 'first', code: 'first' }],
    ] as const) {
      using broken = connectTo({ url: 'http://duet.test' }, { fetch: async () => answer })
      await assert.rejects(users(broken.duet).get(1), { kind: 'server', ...error })
    }
  })

  it('end with the reason of their signal, and leave no listener at it', async () => {
    using client = connectTo({ url: 'http://duet.test' }, { fetch: neverAnswers, clock: new ManualClock(0) })
    const reason = new Error('no longer wanted')
    for (const [name, call] of Object.entries(readingCalls)) {
      const stop = new AbortController()
      const ended = call(client.duet, stop.signal).catch(error => error)
      await new Promise(setImmediate)
      stop.abort(reason)
      await new Promise(setImmediate)
      assert.equal(await Promise.race([ended, 'still waiting']), reason, name)
      assert.deepEqual(getEventListeners(stop.signal, 'abort'), [], name)
    }
  })

  it('do not follow a redirect, which could send a password to another host', async () => {
    const paths: string[] = []
    const port = await freePort()
    await using elsewhere = createServer((request, response) => {
      paths.push(request.url ?? '')
      if (request.url === '/tokens') response.writeHead(307, { location: `http://127.0.0.1:${port}/stolen` })
      response.end('{}')
    }).listen(port, '127.0.0.1')
    await once(elsewhere, 'listening')
    using client = connectTo({ url: `http://127.0.0.1:${port}` })
    await assert.rejects(client.duet.signIn({ email: 'a@example.com', password: 'secret' }), { kind: 'server' })
    assert.deepEqual(paths, ['/tokens'])
  })

  it('have the token, the headers and any JSON value of the caller, no cookies, and leave no timer; the log has their time and limit', async () => {
    const clock = new ManualClock(0)
    const sent: unknown[] = []
    const fetch: typeof globalThis.fetch = async (input, init) => {
      const { authorization, ...headers } = Object.fromEntries(new Headers(init?.headers))
      sent.push([String(input), authorization, headers, init?.body, init?.credentials])
      clock.sleep(250)
      return Response.json({}, { headers: { ratelimit: '"default";r=3;t=42', 'retry-after': '7' } })
    }
    const storage = new TabStorage(tokenFor(7))
    using client = connectTo({ url: 'http://duet.test/shop//' }, { fetch, clock, storage })
    const timers = clock.due.length
    const { request } = client.duet
    await assert.rejects(request('GET', '/a', { signal: AbortSignal.abort() }), { name: 'AbortError' })
    await request('GET', '/metrics', { headers: { Authorization: 'Bearer other', 'X-Own': '1' } })
    const headers = { 'Content-Type': 'application/merge+json' }
    await request('POST', 'a', { body: [{ password: 'secret' }], headers })
    storage.tell(undefined)
    await request('PUT', '/a', { body: null })
    await request('PUT', '/a', { body: 0, headers: { authorization: 'Bearer other' } })
    const [own, json] = [{ 'x-own': '1' }, { 'content-type': 'application/json' }]
    const merge = { 'content-type': 'application/merge+json' }
    const [address, session] = ['http://duet.test/shop/a', `Bearer ${tokenFor(7)}`]
    assert.deepEqual(sent, [
      ['http://duet.test/shop/metrics', 'Bearer other', own, undefined, 'omit'],
      [address, session, merge, '[{"password":"secret"}]', 'omit'],
      [address, undefined, json, 'null', 'omit'],
      [address, 'Bearer other', json, '0', 'omit'],
    ])
    const common = { durationMs: 250, rateLimit: { remaining: 3, resetSeconds: 42 }, retryAfter: 7 }
    assert.partialDeepStrictEqual(client.requests, [
      { ...common, startedAt: 0, headers: own, authorized: true, body: undefined },
      { ...common, startedAt: 250, headers: merge, authorized: true, body: '[{"password":"…"}]' },
      { ...common, startedAt: 500, headers: json, authorized: false, body: 'null' },
      { ...common, startedAt: 750, headers: json, authorized: true, body: '0' },
    ])
    assert.deepEqual([client.requests.length, clock.due.length], [4, timers - 1])
  })

  it('use the fetch that the page has at that time, and succeed even if a listener throws, which is uncaught', async t => {
    const fault = new Error('a fault of the application')
    using client = connectTo({ url: 'http://duet.test' }, { onRequest: () => assert.fail(fault) })
    t.mock.method(globalThis, 'fetch', async () => Response.json({ id: 7 }))
    const uncaught = await uncaughtDuring(async () => assert.equal((await users(client.duet).get(7)).id, 7))
    assert.deepEqual(uncaught, [fault])
    await assert.rejects(payments({ ...client.duet }).pay(1), /This is not what connect\(\) returned/)
  })

  it('end with an error if the links of a list form a cycle', async () => {
    const fetch = interceptedFetch(() => Response.json([], { headers: { link: '</users?after=1>; rel=next' } }))
    using client = connectTo({ url: 'http://duet.test' }, { fetch })
    await assert.rejects(users(client.duet).list().toArray(), { kind: 'server' })
    const asked = client.requests.map(({ url }) => url)
    assert.deepEqual(asked, ['http://duet.test/users', 'http://duet.test/users?after=1'])
  })

  it('are reported with the remaining rate limit, and a refusal contains the time to wait', async () => {
    await using app = await startTestApp({ ...env, RATE_LIMIT_MAX: '2', RATE_LIMIT_PATHS: '/' })
    using client = connectTo(app)
    for (const remaining of [1, 0]) {
      await users(client.duet).list({ limit: 3 }).toArray()
      const { requestId = '', rateLimit, ...entry } = client.requests.at(-1) ?? assert.fail()
      const path = '/users?limit=3'
      const expected = { method: 'GET', path, url: app.url + path, status: 200, attempt: 1, replayed: false }
      assert.partialDeepStrictEqual(entry, expected)
      assert.equal(rateLimit?.remaining, remaining)
      assert.match(requestId, /^[\w-]{20,}$/)
    }
    await assert.rejects(users(client.duet).get(1), (error: DuetError) => {
      const { status, requestId, retryAfter, rateLimit } = client.requests.at(-1) ?? assert.fail()
      assert.deepEqual([error.kind, error.status, status, error.requestId], ['rateLimited', 429, 429, requestId])
      assert.deepEqual([error.retryAfter, rateLimit?.remaining], [retryAfter, 0])
      assert.ok((error.retryAfter ?? 0) >= 1 && (error.retryAfter ?? 0) <= 60)
      return true
    })
  })

  it('fail as offline without an answer: connection refused, answer cut off, or timeout', async () => {
    using nobody = connectTo({ url: `http://127.0.0.1:${await freePort()}` })
    const unreachable = { name: 'DuetError', kind: 'offline', message: 'The service cannot be reached.' }
    await assert.rejects(users(nobody.duet).get(1), { ...unreachable, status: undefined })
    assert.deepEqual(nobody.lines(), ['GET /users/1 undefined'])

    const cause = new TypeError('terminated')
    const broken = new ReadableStream({ pull: controller => controller.error(cause) })
    using cut = connectTo({ url: 'http://duet.test' }, { fetch: async () => new Response(broken) })
    await assert.rejects(users(cut.duet).get(1), { ...unreachable, status: undefined, cause })
    assert.deepEqual(cut.lines(), ['GET /users/1 undefined'])

    const halfway: typeof fetch = async (...given) =>
      new Response(new ReadableStream({ pull: async () => void (await neverAnswers(...given)) }))
    for (const options of [{ fetch: neverAnswers }, { fetch: halfway, timeoutMs: 5000 }]) {
      const clock = new ManualClock(0)
      using silent = connectTo({ url: 'http://duet.test' }, { ...options, clock })
      const { signal } = new AbortController() // has no effect on it
      const reading = within(users(silent.duet).get(1, { signal }), 'the timeout')
      await new Promise(setImmediate)
      assert.deepEqual(clock.due, [options.timeoutMs ?? 30_000])
      clock.pass(30_000)
      await assert.rejects(reading, { kind: 'offline', message: 'The service did not answer in time.' })
    }
  })

  it('never follow a link to another host, because they would send the token there', async () => {
    const member = await createMember(app)
    const asked: string[] = []
    const headers = { link: '<https://evil.example/users>; rel="next"', 'content-type': 'application/json' }
    const fetch = interceptedFetch(({ path }) => {
      asked.push(path)
      return path === '/users?limit=1' ? new Response('[]', { headers }) : undefined
    })
    const clock = new InstantClock()
    using client = connectTo(app, { fetch, clock })
    await client.duet.signIn({ email: member.email, password: 'right password' })
    await assert.rejects(users(client.duet).list({ limit: 1 }).toArray(), {
      kind: 'server',
      message: 'The service links to another host: https://evil.example',
    })
    const placed = await orders(client.duet).create(member.id, [{ name: 'Gear', quantity: 1, price: 5 }])
    for (const origin of ['https://evil.example', app.url.replace('http:', 'https:')]) {
      const stolen = { ...placed, links: { ...placed.links, pay: { href: `${origin}/pay`, method: 'POST' } } }
      await assert.rejects(orders(client.duet).follow(stolen, 'pay'), { kind: 'server', status: undefined })
    }
    assert.deepEqual(clock.pauses, [], 'and do not try it again')
    assert.deepEqual(asked, ['/tokens', '/users?limit=1', `/users/${member.id}/orders`])
  })

  it('may ask whether something has changed, and the answer that nothing has (304) is no failure', async () => {
    using client = connectTo(app)
    const { id } = await createUser(app)
    const read = await users(client.duet).get(id)
    const headers = { 'if-none-match': read[etag] ?? assert.fail() }
    assert.equal((await client.duet.request('GET', `/users/${id}`, { headers })).status, 304)
    await users(client.duet).update(id, { age: 40 })
    assert.equal((await client.duet.request('GET', `/users/${id}`, { headers })).status, 200)
  })

  it('reach a service below a path prefix, also by its links', async () => {
    await using app = await startTestApp({ ...env, RATE_LIMIT_MAX: '0', LINK_PREFIX: '/shop' })
    // As behind a gateway that publishes the service below /shop.
    const gateway: typeof fetch = (input, init) => {
      const url = String(input)
      assert.ok(url.startsWith(`${app.url}/shop/`), url)
      return fetch(url.replace('/shop/', '/'), init)
    }
    const page = globalThis as { location?: unknown }
    page.location = { href: `${app.url}/shop/page?q` }
    using client = connectTo({ url: './' }, { fetch: gateway })
    Reflect.deleteProperty(page, 'location')
    assert.equal(client.duet.url, `${app.url}/shop`, 'relative to the page')
    const { create, list } = users(client.duet)
    for (let count = 0; count < 3; count++) await create(somebody())
    const all = await list({ limit: 1 }).toArray()
    assert.equal(all.length, 3)
    const { create: place, follow, items } = orders(client.duet)
    const [made, unwanted] = [await place(all[0]?.id ?? 0, someItems()), await place(all[0]?.id ?? 0, someItems())]
    assert.equal((await items(made)).length, someItems().length)
    await follow(unwanted, 'cancel')
    assert.equal((await follow(made, 'self')).id, made.id)
    const { order: paid, payment = assert.fail() } = await follow(made, 'pay')
    assert.equal((await follow(paid, 'track')).order_id, made.id)
    assert.equal((await payments(client.duet).get(payment)).order_id, made.id)
  })
})
