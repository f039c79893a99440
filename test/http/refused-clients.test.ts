import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { readConfig } from '../../src/config.ts'
import { mostIgnored } from '../../src/http/bodies.ts'
import { clientKey, TrustedProxies } from '../../src/http/client-address.ts'
import { Connections, pipelineLength } from '../../src/http/connections.ts'
import { MemoryLimits } from '../../src/limits/memory-limits.ts'
import { rateLimitOf } from '../../src/wiring/limiters.ts'
import { startTestApp, startTestServer } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { ask, RawConnection, sendRaw } from '../support/http.ts'
import { newRedisDatabase, redisMissing } from '../support/redis.ts'
import { assertRefusal } from '../support/refusal.ts'
import { metricOf, SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

const get = (path: string, head = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${head}\r\n`
const options = 'OPTIONS /api/users HTTP/1.1\r\nHost: localhost\r\n\r\n'
const refusedLine = /^A client has sent more than twice what a limit allows/

/** All that comes back on a new connection until its end; nothing if the connection was refused. */
async function received(port: number, sent: string, localAddress?: string): Promise<string> {
  using connection = await RawConnection.open(port, localAddress)
  connection.write(sent)
  await connection.until(() => connection.isOver) // by a reset, too
  return connection.unread
}

const closing = 'Connection: close\r\n'

function statuses(text: string): readonly string[] {
  return text.match(/(?<=HTTP\/1.1 )\d+/g) ?? []
}

/** Whether a request on a new connection is answered. */
async function isServed(port: number, localAddress?: string): Promise<boolean> {
  return statuses(await received(port, get('/users', closing), localAddress)).join() === '200'
}

/** Sends as many requests as the client may send until it is refused, and more. Only the last answer closes. */
async function exceed(port: number, limit: number, head = ''): Promise<readonly string[]> {
  const text = await received(port, get('/api/users', head).repeat(2 * limit + 40))
  const closing = text.match(/(?<=connection: )[\w-]+/gi)?.map(value => value === 'close') ?? []
  assert.deepEqual(closing.lastIndexOf(false), closing.length - 2)
  return statuses(text)
}

test('a client above twice the rate limit is refused at accept until its window ends, and in the next window again', async () => {
  const clock = new TestClock()
  await using app = await startTestApp({ RATE_LIMIT_MAX: '3' }, { clock })
  for (let window = 1; window <= 2; window++) {
    const answers = await exceed(app.port, 3)
    assert.deepEqual(answers, [...Array(3).fill('200'), ...Array(4).fill('429')])
    for (let tries = 0; tries < 5; tries++) assert.equal(await isServed(app.port), false)
    assert.ok(await isServed(app.port, '127.0.0.2'), 'other clients are served')
    clock.pass(59_999)
    assert.equal(await isServed(app.port), false)
    clock.pass(1)
    assert.ok(await isServed(app.port))
    const lines = app.logs.filter(({ msg }) => refusedLine.test(String(msg)))
    assert.equal(lines.length, window, 'one line for each window')
    assert.ok(!JSON.stringify(lines).includes('127.0.0'), 'the log has no addresses')
    assert.equal(await metricOf(app, 'duet_connections_refused_total'), 6 * window)
  }
})

test('two threads count exempt requests together, and refuse a client of which one of them knows', async () => {
  await using app = await startTestApp({ THREADS: '2', RATE_LIMIT_MAX: '3', LOG_LEVEL: 'error' })
  const answers: string[] = []
  for (let packets = 0; packets < 11; packets++) {
    answers.push(...statuses(await received(app.port, options.repeat(99) + get('/', closing))))
  }
  assert.equal(answers.length, 1_100)
  assert.equal(answers.filter(status => status === '429').length, 100)

  await exceed(app.port, 3)
  const served: boolean[] = []
  for (let tries = 0; tries < 20; tries++) served.push(await isServed(app.port))
  assert.deepEqual(served, Array(20).fill(false))
  assert.ok(await isServed(app.port, '127.0.0.2'))
})

test('a client above the limit that Redis counts is refused at accept, too', {
  skip: redisMissing() ?? false,
}, async () => {
  await using app = await startTestApp({ RATE_LIMIT_MAX: '3', REDIS_URL: await newRedisDatabase() })
  assert.equal((await exceed(app.port, 3)).length, 7)
  assert.equal(await isServed(app.port), false)
  assert.ok(await isServed(app.port, '127.0.0.2'))
})

test('when a client becomes refused its other connections are closed, and its WebSockets stay', async () => {
  await using app = await startTestApp({ RATE_LIMIT_MAX: '3' }, { clock: new TestClock() })
  using idle = await RawConnection.open(app.port)
  idle.write(get('/users'))
  assert.equal((await idle.response()).status, 200)
  using socket = await SocketClient.connect(app)
  await exceed(app.port, 2)
  assert.equal(await idle.closed(), '')
  await socket.initialise()
})

test('a client behind a trusted proxy gets 429, and connections of the proxy stay possible', async () => {
  await using app = await startTestApp({ RATE_LIMIT_MAX: '3', TRUST_PROXY: '127.0.0.1' })
  const forwarded = 'X-Forwarded-For: 192.0.2.1\r\n'
  assert.equal((await exceed(app.port, 3, forwarded)).length, 7)
  assertRefusal(await sendRaw(app.port, get('/api/users', forwarded)), 429)
  assert.equal((await sendRaw(app.port, get('/api/users', 'X-Forwarded-For: 192.0.2.2\r\n'))).status, 200)
})

test('OPTIONS, /, health, metrics, malformed requests and CONNECT are limited to 1,000 a minute together, beside the rate limit', async () => {
  const clock = new TestClock()
  await using app = await startTestApp({ LOG_LEVEL: 'error' }, { clock })
  for (let count = 0; count < 990; count += 99) {
    const answers = statuses(await received(app.port, options.repeat(49) + get('/').repeat(49) + get('/', closing)))
    assert.deepEqual(new Set(answers), new Set(['204', '200']))
  }
  const probes = [get('/health/live'), get('/health/ready'), get('/metrics')]
  const others = [...probes, 'CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n']
  const answered: number[] = []
  for (const sent of ['no request\r\n\r\n', ...others, ...others, options])
    answered.push((await sendRaw(app.port, sent)).status)
  assert.deepEqual(answered, [400, 200, 200, 200, 501, 200, 200, 200, 501, 204])
  for (const sent of [options, get('/'), ...probes]) {
    const refused = await sendRaw(app.port, sent)
    assertRefusal(refused, 429, 'Too many requests. Try again later.')
    assert.equal(refused.headers.get('retry-after'), '60')
  }
  assert.equal((await sendRaw(app.port, get('/api/users'))).headers.get('ratelimit'), '"default";r=99;t=60')
  assert.equal(statuses(await received(app.port, get('/', closing), '127.0.0.2')).join(), '200')
  clock.pass(60_000)
  assert.equal((await sendRaw(app.port, get('/'))).status, 200)
})

const optionsOfUsers = 'OPTIONS /users HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** A server with a limit of one request and few exempt ones. `/slow` is never answered. */
async function startSlow({ exempt = 1, proxy = [] as readonly string[] } = {}) {
  const clock = new TestClock()
  const proxies = new TrustedProxies(proxy)
  const limits = new MemoryLimits(clock)
  const config = readConfig({ RATE_LIMIT_MAX: '1', RATE_LIMIT_PATHS: '/limited' })
  const usual = rateLimitOf(config, limits, limits, proxies) ?? assert.fail()
  const rateLimit = { ...usual, exempt: limits.limiter('exempt', exempt, 60_000) }
  const server = await startTestServer(
    fastify => {
      fastify.get('/slow', () => new Promise<never>(() => {}))
      fastify.get('/users', () => [])
      fastify.post('/echo', ({ body }, reply) => reply.send(body))
    },
    { rateLimit, proxies },
  )
  return Object.assign(server, { clock })
}

test('exempt requests have their client refused above twice their own limit, not above that of others', async () => {
  await using server = await startSlow({ exempt: 3 })
  const answers = statuses(await received(server.port, optionsOfUsers.repeat(9)))
  assert.deepEqual(answers, [...Array(3).fill('204'), ...Array(4).fill('429')])
  assert.equal(await isServed(server.port), false)
})

test('malformed requests have their client refused above twice their limit, until its window ends, and pipelined ones that are dropped', async () => {
  await using server = await startSlow()
  for (let sent = 0; sent < 2; sent++) assert.equal((await sendRaw(server.port, 'no request\r\n\r\n')).status, 400)
  assert.equal(await received(server.port, 'no request\r\n\r\n'), '')
  assert.equal(await isServed(server.port), false)
  server.clock.pass(60_000)
  assert.ok(await isServed(server.port))
  assert.equal(await received(server.port, get('/slow') + get('/a').repeat(pipelineLength + 1)), '')
  assert.equal(await isServed(server.port), false)
})

test('malformed requests of a trusted proxy count for nobody: it cannot choose what its clients send', async () => {
  await using server = await startSlow({ proxy: ['127.0.0.1'] })
  for (let sent = 0; sent < 4; sent++) assert.equal((await sendRaw(server.port, 'no request\r\n\r\n')).status, 400)
  assert.equal((await sendRaw(server.port, optionsOfUsers)).status, 204)
})

test('connections that their client resets do not count as malformed requests', async () => {
  await using server = await startSlow()
  let resets = 0
  server.server.server.on('clientError', () => resets++)
  for (let sent = 1; sent <= 3; sent++) {
    using connection = await RawConnection.open(server.port)
    connection.write(`${get('/users')}GET`)
    assert.equal((await connection.response()).status, 200)
    connection.reset()
    await waitUntil(() => resets === sent)
  }
  assert.ok(await isServed(server.port))
})

function connectionsOf(most: number, proxies = new TrustedProxies([])) {
  const clock = new TestClock()
  const refused = new MemoryLimits(clock).refusedClients()
  const connections = new Connections({ most, proxies, refused, onRefused: () => {} })
  const accepts = (remoteAddress: string) =>
    connections.accept(Object.assign(new EventEmitter(), { remoteAddress, destroy() {} }) as unknown as Socket)
  return { clock, connections, accepts }
}

test('connections that a refused client has tried do not add to those that it may have open later', () => {
  const { clock, connections, accepts } = connectionsOf(2)
  const address = '192.0.2.1'
  const accepted = [accepts(address)]
  connections.refuse(clientKey(address), 60)
  for (let tries = 0; tries < 3; tries++) assert.equal(accepts(address), false)
  clock.pass(60_000)
  for (let tries = 0; tries < 3; tries++) accepted.push(accepts(address))
  assert.deepEqual(accepted, [true, true, false, false])
})

test('all addresses of an IPv6 /64 network are refused together, and others are not', () => {
  const { connections, accepts } = connectionsOf(0, new TrustedProxies(['2001:db8::7']))
  const refusals = [1, 2].map(host => connections.refuse(clientKey(`2001:db8::${host}`), 60))
  assert.deepEqual(refusals, [true, false], 'the log tells it once')
  const expected = { '2001:db8::2': false, '2001:db8:0:1::1': true, '192.0.2.1': true, '2001:db8::7': true }
  for (const [address, isAccepted] of Object.entries(expected)) assert.equal(accepts(address), isAccepted, address)
})

const chunkedHead = (line: string) =>
  `${line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
const inChunks = (chunks: readonly string[]) =>
  `${chunks.map(chunk => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`

test('the next request after a refused one with a chunked body has its own body', async () => {
  await using server = await startSlow()
  using connection = await RawConnection.open(server.port)
  connection.write(get('/limited'))
  assert.equal((await connection.response()).status, 404)
  const many = chunkedHead('POST /limited') + inChunks(Array(1_000).fill(' '))
  connection.write(many + chunkedHead('POST /echo') + inChunks(['{"a"', ':1}']))
  assertRefusal(await connection.response(), 429)
  assert.equal((await connection.response()).body, '{"a":1}')
})

test('a chunked body that nobody reads closes its connection when it is too long', async () => {
  await using server = await startSlow()
  const read: number[] = []
  server.server.server.on('connection', (socket: Socket) => {
    socket.on('close', () => read.push(socket.bytesRead))
  })
  await received(server.port, get('/limited', closing))
  const endless = `${chunkedHead('POST /limited')}${'1\r\n \r\n'.repeat(1_000_000)}`
  assert.deepEqual(statuses(await received(server.port, endless)), ['429'])
  await waitUntil(() => read.length === 2)
  assert.ok((read[1] ?? 0) <= mostIgnored + 2 * 65_536, `${read[1]} bytes`)
  assert.notEqual((await ask(`${server.url}/limited`)).body, '', 'another user of the parser reads bodies')
})

test('an exempt request with a body counts for the rate limit', async () => {
  await using app = await startTestApp({ RATE_LIMIT_MAX: '1', RATE_LIMIT_PATHS: '/' })
  const probe = get('/health/live', 'Content-Length: 1\r\n').replace(/$/, ' ')
  assert.deepEqual([(await sendRaw(app.port, probe)).status, (await sendRaw(app.port, probe)).status], [200, 429])
  assert.equal((await sendRaw(app.port, get('/health/live'))).status, 200)
})
