import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { readConfig } from '../../src/config.ts'
import { TrustedProxies } from '../../src/http/client-address.ts'
import { RequestsAtOnce } from '../../src/lib/requests-at-once.ts'
import { during, type Wait, Waits } from '../../src/lib/waits.ts'
import { MemoryLimits } from '../../src/limits/memory-limits.ts'
import { rateLimitOf } from '../../src/wiring/limiters.ts'
import { growthOf, megabytes } from '../graphql/support/memory.ts'
import { converse } from '../subscriptions/served-sockets.ts'
import { startTestApp, startTestServer } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { read } from '../support/graphql.ts'
import { RawConnection } from '../support/http.ts'
import { SocketClient } from '../support/sockets.ts'
import { testTimeoutMs, waitUntil } from '../support/wait.ts'

const limits = new MemoryLimits(new TestClock())
const proxies = new TrustedProxies([])

const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'

/** A server on which each client may have two requests in progress. Requests for `/limited/…` end when the test says so. */
async function start(proxies = new TrustedProxies([])) {
  const begun: string[] = []
  const ends = new Map<string, (answer: string) => void>()
  const hold = ({ params }: { params: unknown }) => {
    const { name } = params as { name: string }
    begun.push(name)
    return new Promise<string>(resolve => ends.set(name, resolve))
  }
  const config = readConfig({ RATE_LIMIT_MAX: '1000', RATE_LIMIT_PATHS: '/limited' })
  const usual = rateLimitOf(config, limits, limits, proxies) ?? assert.fail()
  const rateLimit = { ...usual, atOnce: new RequestsAtOnce(2, 10 * testTimeoutMs) }
  const server = await startTestServer(
    fastify => {
      fastify.get('/limited/:name', hold)
      fastify.post('/limited/:name', hold)
      fastify.get('/free/:name', hold)
    },
    { rateLimit, proxies },
  )
  const connections = new DisposableStack()
  /** Sends a request on a connection of its own, and waits until it has arrived. */
  const send = async (path: string, head = '', localAddress = '127.0.0.1') => {
    const connection = connections.use(await RawConnection.open(server.port, localAddress))
    const arrived = server.lifecycle.requestsInFlight + 1
    connection.write(
      `${head === '' || head === upgrade ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nHost: localhost\r\n${head}\r\n`,
    )
    await waitUntil(() => server.lifecycle.requestsInFlight === arrived)
    return connection
  }
  const hasBegun = (...names: string[]) => waitUntil(() => names.join() === begun.join())
  const end = (name: string, answer = 'done') => ends.get(name)?.(answer)
  const stop = async () => {
    connections.dispose()
    await server[Symbol.asyncDispose]()
  }
  return { ...server, begun, send, hasBegun, end, [Symbol.asyncDispose]: stop }
}

describe('Of the limited requests of one client', () => {
  it('two are in progress; the others wait, in their order, and neither other clients nor other requests do', async () => {
    await using server = await start()
    for (const name of ['a', 'b', 'c']) await server.send(`/limited/${name}`)
    await server.send('/limited/d', upgrade) // a route that has no sockets sends its usual response
    await server.send('/limited/other', '', '127.0.0.2')
    for (const name of ['x', 'y', 'z']) await server.send(`/free/${name}`)
    const begun = ['a', 'b', 'other', 'x', 'y', 'z']
    await server.hasBegun(...begun)
    server.end('b')
    await server.hasBegun(...begun, 'c')
    server.end('a')
    await server.hasBegun(...begun, 'c', 'd')
    for (const name of ['c', 'd']) server.end(name)
    await waitUntil(() => server.lifecycle.requestsInFlight === 4)
    for (const name of ['e', 'f', 'g']) await server.send(`/limited/${name}`)
    await server.send('/limited/another', '', '127.0.0.3')
    await server.hasBegun(...begun, 'c', 'd', 'e', 'f', 'another')
  })

  it('those that wait begin one after the other, in their order, while none ends for long', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const atOnce = new RequestsAtOnce(2, 50)
    const begun: string[] = []
    for (const name of ['a', 'b', 'c', 'd', 'e']) Promise.resolve(atOnce.enter('client')).then(() => begun.push(name))
    t.mock.timers.tick(49)
    atOnce.leave('client')
    for (let ticks = 0; ticks < 10; ticks++) await undefined
    assert.deepEqual(begun, ['a', 'b'], 'other clients have a turn before the next one begins')
    await turn()
    assert.deepEqual(begun, ['a', 'b', 'c'])
    t.mock.timers.tick(49)
    await turn()
    assert.deepEqual(begun, ['a', 'b', 'c'])
    t.mock.timers.tick(1)
    await turn()
    assert.deepEqual(begun, ['a', 'b', 'c', 'd'])
    t.mock.timers.tick(50)
    await turn()
    assert.deepEqual(begun, ['a', 'b', 'c', 'd', 'e'])
    Promise.resolve(atOnce.enter('client')).then(() => begun.push('f'))
    for (const left of [3, 2]) {
      atOnce.leave('client')
      await turn()
      assert.equal(begun.length, 5, `${left} are in progress`)
    }
    atOnce.leave('client')
    await turn()
    assert.equal(begun.at(-1), 'f')
  })

  it('one that had its turn in time takes one place, however long it lasts', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const atOnce = new RequestsAtOnce(1, 50)
    atOnce.enter('client')
    const next = atOnce.enter('client')
    atOnce.leave('client')
    await next
    t.mock.timers.tick(50)
    atOnce.leave('client')
    assert.equal(atOnce.enter('client'), undefined)
  })

  it('one that fails leaves its place', async () => {
    const atOnce = new RequestsAtOnce(1, testTimeoutMs)
    const failure = new Error('It fails')
    const failing = atOnce.during('client', () => Promise.reject(failure))
    await assert.rejects(failing, failure)
    assert.equal(atOnce.enter('client'), undefined)
  })

  it('one that waits for others says so in its log, as a wait in a queue', async () => {
    const atOnce = new RequestsAtOnce(1, testTimeoutMs)
    const waits: Wait[] = []
    const span = { traceparent: '', add: (kind: Wait) => waits.push(kind), end() {} }
    atOnce.enter('client')
    const next = during(new Waits(span), () => atOnce.enter('client'))
    atOnce.leave('client')
    await next
    assert.deepEqual(waits, ['queue'])
  })

  it('one whose client has disconnected is not begun, or leaves its place to the next', async () => {
    await using server = await start()
    const a = await server.send('/limited/a')
    await server.send('/limited/b')
    const c = await server.send('/limited/c')
    await server.send('/limited/d')
    c.reset()
    await waitUntil(() => server.lifecycle.requestsInFlight === 3)
    a.reset()
    await waitUntil(() => server.lifecycle.requestsInFlight === 2)
    for (let turns = 0; turns < 20; turns++) await turn()
    assert.deepEqual(server.begun, ['a', 'b', 'd'])
    await server.send('/limited/e')
    server.end('a')
    server.end('b')
    await server.hasBegun('a', 'b', 'd', 'e')
  })

  it('one whose answer is not read yet, or whose body has not arrived, is not in progress', async () => {
    await using server = await start()
    for (const name of ['a', 'b'])
      await server.send(`/limited/${name}`, 'Content-Type: application/json\r\nContent-Length: 2\r\n')
    const slow = connect({ port: server.port, host: '127.0.0.1' }).pause()
    await once(slow, 'connect')
    slow.write('GET /limited/slow HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await server.hasBegun('slow')
    server.end('slow', 'x'.repeat(2 ** 24))
    for (const name of ['c', 'd']) await server.send(`/limited/${name}`)
    await server.hasBegun('slow', 'c', 'd')
    assert.equal(server.lifecycle.requestsInFlight, 5)
    slow.destroy()
    await waitUntil(() => server.lifecycle.requestsInFlight === 4)
    for (const path of ['/limited/e', '/free/x']) await server.send(path)
    await waitUntil(() => server.begun.includes('x'))
    assert.deepEqual(server.begun, ['slow', 'c', 'd', 'x'], 'it has left its place only once')
  })
})

test('clients of a trusted proxy do not wait for each other', async () => {
  await using server = await start(new TrustedProxies(['127.0.0.1']))
  for (const name of ['a', 'b', 'c']) await server.send(`/limited/${name}`, 'X-Forwarded-For: 192.0.2.1\r\n')
  await server.send('/limited/other', 'X-Forwarded-For: 192.0.2.2\r\n')
  await server.hasBegun('a', 'b', 'other')
})

test('nothing is kept of a client whose requests have ended', () => {
  const atOnce = new RequestsAtOnce(2)
  const grown = growthOf(() => {
    for (let client = 0; client < 50_000; client++) {
      atOnce.enter(`client ${client}`)
      atOnce.leave(`client ${client}`)
    }
  })
  assert.ok(grown < 4 * 1024 * 1024, megabytes(grown))
})

test('an operation over a socket waits for the requests of its client, and they wait for it', async () => {
  const atOnce = new RequestsAtOnce(1, testTimeoutMs)
  using conversation = converse({ atOnce })
  const { say, begin, wire } = conversation
  assert.equal(atOnce.enter('a client'), undefined)
  say({ type: 'connection_init' })
  await waitUntil(() => wire.sent.length === 1)
  begin('1', '{ __typename }')
  for (let pings = 1; pings <= 3; pings++) {
    say({ type: 'ping' })
    await waitUntil(() => wire.sent.length === 1 + pings)
  }
  assert.deepEqual(wire.sent.slice(1), Array(3).fill({ type: 'pong' }))
  atOnce.leave('a client')
  await waitUntil(() => wire.sent.length === 6)
  assert.equal(atOnce.enter('a client'), undefined)
})

test('requests over HTTP and operations over a socket share the places of their client, where the rate limit counts; an open socket takes none', async t => {
  const { mock } = t.mock.method(RequestsAtOnce.prototype, 'enter')
  for (const RATE_LIMIT_PATHS of ['/graphql', '/api/']) {
    await using app = await startTestApp({ THREADS: '1', RATE_LIMIT_PATHS })
    using socket = await SocketClient.connect(app)
    await read(app, '{ __typename }')
    await socket.read('{ __typename }')
    const [request, operation] = mock.calls
    assert.equal(mock.callCount(), 2, 'none is added by the second app')
    assert.equal(operation?.this, request?.this)
    assert.deepEqual(operation?.arguments, request?.arguments)
  }
})

test('a fiftieth of the rate limit may be in progress, and always two', () => {
  for (const [max, most] of Object.entries({ 1: 2, 100: 2, 510: 11 })) {
    const limit = rateLimitOf(readConfig({ RATE_LIMIT_MAX: max }), limits, limits, proxies)
    for (let n = 0; n < most; n++) assert.equal(limit?.atOnce.enter('client'), undefined)
    assert.notEqual(limit?.atOnce.enter('client'), undefined)
  }
})
