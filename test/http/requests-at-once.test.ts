import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it, test } from 'node:test'
import { readConfig } from '../../src/config.ts'
import { TrustedProxies } from '../../src/http/client-address.ts'
import { MemoryLimits } from '../../src/limits/memory-limits.ts'
import { RequestsAtOnce } from '../../src/limits/requests-at-once.ts'
import { rateLimitOf } from '../../src/wiring/limiters.ts'
import { converse } from '../subscriptions/served-sockets.ts'
import { startTestServer } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { RawConnection } from '../support/http.ts'
import { testTimeoutMs, waitUntil, within } from '../support/wait.ts'

const limits = new MemoryLimits(new TestClock())
const proxies = new TrustedProxies([])

/** A server on which each client may have two requests in progress. Requests for `/limited/…` end when the test says so. */
async function start(longestMs = testTimeoutMs) {
  const begun: string[] = []
  const ends = new Map<string, (answer: string) => void>()
  const hold = ({ params }: { params: unknown }) => {
    const { name } = params as { name: string }
    begun.push(name)
    return new Promise<string>(resolve => ends.set(name, resolve))
  }
  const rateLimit = {
    limiter: limits.limiter('requests', 1000, 60_000),
    exempt: limits.limiter('exempt', 1000, 60_000),
    atOnce: new RequestsAtOnce(2, longestMs),
    paths: ['/limited'],
    proxies,
    refused: limits.refusedClients(),
  }
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
    connection.write(`${head === '' ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nHost: localhost\r\n${head}\r\n`)
    await waitUntil(() => server.lifecycle.requestsInFlight === arrived)
    return connection
  }
  const hasBegun = (...names: string[]) =>
    within(
      waitUntil(() => names.join() === begun.join()),
      `${names}`,
    )
  const end = (name: string, answer = 'done') => ends.get(name)?.(answer)
  const stop = async () => {
    connections.dispose()
    await server[Symbol.asyncDispose]()
  }
  return { ...server, begun, send, hasBegun, end, [Symbol.asyncDispose]: stop }
}

describe('Of the limited requests of one client', () => {
  it('two are in progress; the others wait, in their order, and other clients do not', async () => {
    await using server = await start()
    for (const name of ['a', 'b', 'c', 'd']) await server.send(`/limited/${name}`)
    await server.send('/limited/other', '', '127.0.0.2')
    await server.hasBegun('a', 'b', 'other')
    server.end('b')
    await server.hasBegun('a', 'b', 'other', 'c')
    server.end('a')
    await server.hasBegun('a', 'b', 'other', 'c', 'd')
    for (const name of ['c', 'd']) server.end(name)
    await waitUntil(() => server.lifecycle.requestsInFlight === 1)
    for (const name of ['e', 'f', 'g']) await server.send(`/limited/${name}`)
    await server.send('/limited/another', '', '127.0.0.3')
    await server.hasBegun('a', 'b', 'other', 'c', 'd', 'e', 'f', 'another')
  })

  it('none waits longer than those before it may take', async () => {
    await using server = await start(1)
    for (const name of ['a', 'b', 'c', 'd']) await server.send(`/limited/${name}`)
    await server.hasBegun('a', 'b', 'c', 'd')
    for (const name of ['a', 'b', 'c', 'd']) server.end(name)
    await waitUntil(() => server.lifecycle.requestsInFlight === 0)
  })

  it('one that has waited too long for others counts as in progress', async () => {
    const atOnce = new RequestsAtOnce(1, 1)
    assert.equal(atOnce.enter('client'), undefined)
    await atOnce.enter('client')
    atOnce.leave('client')
    const turn = atOnce.enter('client')
    assert.notEqual(turn, undefined)
    await turn
    atOnce.leave('client')
    atOnce.leave('client')
    assert.equal(atOnce.enter('client'), undefined)
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
    await server.hasBegun('a', 'b', 'd')
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
  })
})

test('requests that are not limited are all in progress at once', async () => {
  await using server = await start()
  for (const name of ['a', 'b', 'c']) await server.send(`/free/${name}`)
  await server.hasBegun('a', 'b', 'c')
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

test('a fiftieth of the rate limit may be in progress, and always two', () => {
  for (const [max, most] of [
    ['1', 2],
    ['100', 2],
    ['510', 11],
  ] as const) {
    const limit = rateLimitOf(readConfig({ RATE_LIMIT_MAX: max }), limits, limits, proxies)
    const turns = Array.from({ length: most + 1 }, () => limit?.atOnce.enter('client'))
    assert.deepEqual(
      turns.map(turn => turn === undefined),
      [...Array(most).fill(true), false],
    )
  }
})
