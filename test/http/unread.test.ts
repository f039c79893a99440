import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { readConfig } from '../../src/config.ts'
import { shutDown } from '../../src/http/lifecycle.ts'
import { largeBytes, mostUnread, Unread } from '../../src/http/unread.ts'
import { alone, systemClock } from '../../src/wiring/base.ts'
import { together } from '../runner/together.ts'
import { startTestApp, startTestServer } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { ask, RawConnection } from '../support/http.ts'
import { waitUntil, within } from '../support/wait.ts'

/** More than the buffers of a connection can hold. */
const size = 24 * 1024 * 1024
const content = '€'.repeat(size / 3)
/** They describe an answer, so they must not be sent without it. */
const described = { etag: '"1"', link: '</large>; rel="next"', location: '/large' }
const stalledMs = 400
const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'

/** A client that reads only when the test tells it to. */
async function openReader(port: number, more = '', headers = '') {
  const socket = connect({ port, host: '127.0.0.1' }).on('error', () => {})
  await once(socket, 'connect')
  socket.write(`GET /large HTTP/1.1\r\nHost: x\r\n${headers}\r\n${more}`)
  const chunks = socket.iterator({ destroyOnReturn: false })
  const reader = {
    socket,
    read: 0,
    /** Reads this many bytes, or all bytes until the connection ends, by a reset too. */
    async take(bytes: number): Promise<void> {
      for (const goal = reader.read + bytes; reader.read < goal; ) {
        const { value, done } = await chunks.next().catch(() => ({ value: undefined, done: true }))
        if (done) break
        reader.read += value.length
      }
    },
    [Symbol.dispose]: () => void socket.destroy(),
  }
  return reader
}

async function start(unread: Unread, register: (server: FastifyInstance) => void = () => {}) {
  let cuts = 0
  const metrics = { cutConnection: () => cuts++, refusedConnection() {} }
  const server = await startTestServer(
    fastify => {
      fastify.get('/large', (_request, reply) => reply.headers(described).send(content))
      register(fastify)
    },
    { unread, metrics },
  )
  return Object.assign(server, { cuts: () => cuts })
}

describe('a client that does not read', () => {
  const test = together()

  test('a client that reads nothing of its answer for 30 seconds is disconnected within a minute', async () => {
    assert.equal(new Unread().stalledMs, 30_000)
    const unread = new Unread(mostUnread, stalledMs)
    await using server = await start(unread)
    const begun = performance.now()
    using reader = await openReader(server.port)
    await waitUntil(() => unread.bytes > 0)
    assert.equal(unread.bytes, size)
    await waitUntil(() => server.lifecycle.connections.size === 0)
    assert.ok(performance.now() - begun >= stalledMs)
    assert.deepEqual([server.cuts(), unread.bytes, server.lifecycle.requestsInFlight], [1, 0, 0])
    assert.equal(server.logs.at(-1)?.msg, 'the client disconnected before the answer was sent')
    await within(reader.take(2 * size), 'the end')
    assert.ok(reader.read < size, `${reader.read} bytes`)
  })

  test('a client that reads a part, and sends while it reads nothing more, is disconnected', async () => {
    await using server = await start(new Unread(mostUnread, stalledMs))
    server.server.server.headersTimeout = stalledMs
    // The beginning of a second request, whose rest comes bit by bit.
    using reader = await openReader(server.port, 'GET / HTTP/1.1\r\nX-Long: ')
    await within(reader.take(size / 24), 'a part of it')
    while (server.lifecycle.connections.size > 0) {
      reader.socket.write('x')
      await pause(stalledMs / 4)
    }
  })

  test('a client that asks another route for a WebSocket and does not read the answer is disconnected, and does not keep the server from stopping', async () => {
    for (const unread of [new Unread(mostUnread, stalledMs), new Unread()]) {
      await using server = await start(unread)
      using _reader = await openReader(server.port, '', upgrade)
      await waitUntil(() => unread.bytes === size)
      if (unread.stalledMs === stalledMs) {
        await waitUntil(() => server.lifecycle.connections.size === 0)
        assert.deepEqual([server.cuts(), unread.bytes], [1, 0])
      } else await within(shutDown(server.server, server.lifecycle, 100), 'the end')
    }
  })
})

test('a client that reads slowly but steadily gets all of its answer, however long it takes', async () => {
  await using server = await start(new Unread(mostUnread, stalledMs))
  using reader = await openReader(server.port)
  const begun = performance.now()
  while (reader.read < size && !reader.socket.closed) {
    await within(reader.take(Math.min(size / 30, size - reader.read)), 'bytes')
    await pause(stalledMs / 8)
  }
  assert.ok(performance.now() - begun > 3 * stalledMs)
  assert.deepEqual([server.cuts(), reader.socket.closed], [0, false])
})

test('connections without unread data are kept: idle ones, and ones that wait for an answer', async () => {
  const go = Promise.withResolvers<void>()
  await using server = await start(new Unread(mostUnread, stalledMs), fastify => {
    fastify.get('/slow', () => go.promise.then(() => ({})))
  })
  const slow = ask(`${server.url}/slow`)
  using idle = await openReader(server.port)
  await within(idle.take(size), 'all of it')
  await waitUntil(() => server.lifecycle.requestsInFlight === 1)
  await pause(2 * stalledMs)
  assert.deepEqual([idle.socket.closed, server.cuts()], [false, 0])
  go.resolve()
  assert.equal((await slow).status, 200)
})

test('while clients leave more than 256 MiB unread, large answers are refused with 503, and small ones are sent', async () => {
  assert.equal(mostUnread, 256 * 1024 * 1024)
  const unread = new Unread(2 * size + 100)
  await using server = await start(unread, fastify => {
    fastify.get('/small', (_request, reply) => reply.send('x'.repeat(largeBytes - 1)))
    fastify.get('/wide', (_request, reply) => reply.send(`${'漢'.repeat(largeBytes / 3)}\ud83d`))
    fastify.get('/own-errors', { errorHandler: ({ message }) => ({ errors: [{ message }] }) }, () => content)
  })
  using readers = new DisposableStack()
  const [first] = await Promise.all([1, 2].map(async () => readers.use(await openReader(server.port))))
  await waitUntil(() => unread.bytes === 2 * size)
  const refused = await ask(`${server.url}/large`)
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '10'])
  const message = 'Too many answers wait to be read. Try again later. If this was a change, it has happened.'
  assert.deepEqual(JSON.parse(refused.body), { error: message })
  assert.ok(!Object.keys(described).some(name => refused.headers.has(name)))
  // Each interface writes its own errors.
  assert.deepEqual(JSON.parse((await ask(`${server.url}/own-errors`)).body), { errors: [{ message }] })
  assert.equal((await ask(`${server.url}/small`)).status, 200)
  assert.equal((await ask(`${server.url}/wide`)).status, 503, 'bytes count, not characters')
  // An answer that was sent completely no longer counts.
  await within(first?.take(size) ?? assert.fail(), 'all of it')
  await waitUntil(() => unread.bytes === size)
  assert.equal((await ask(`${server.url}/large`)).body.length, content.length)
  assert.equal((await ask(`${server.url}/wide`)).body.at(-1), '\ufffd', 'half a character is replaced')
})

test('an answer to a client that is gone does not count', async () => {
  const gone = Promise.withResolvers<void>()
  const unread = new Unread()
  await using server = await start(unread, fastify => {
    fastify.get('/late', () => gone.promise.then(() => content))
  })
  using connection = await RawConnection.open(server.port)
  connection.write('GET /late HTTP/1.1\r\nHost: x\r\n\r\n')
  await waitUntil(() => server.lifecycle.requestsInFlight === 1)
  connection.reset()
  await waitUntil(() => server.lifecycle.requestsInFlight === 0)
  gone.resolve()
  assert.equal((await ask(server.url)).status, 404)
  assert.equal(unread.bytes, 0)
})

test('a thread has its share of the bound for all threads', async () => {
  await using database = await sqlite.create()
  const env = { DATABASE_URL: database.url }
  const config = readConfig(env)
  for (const [threads, status] of [
    [1, 200],
    [mostUnread / largeBytes, 503],
  ] as const) {
    await using app = await startTestApp(env, { common: { ...alone(config, systemClock), threads } })
    const large = await ask(`${app.url}/openapi.json`, { headers: { 'accept-encoding': 'identity' } })
    assert.equal(large.status, status)
  }
})
