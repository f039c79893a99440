import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { unreadBounds } from '../../src/server/unread.ts'
import { startTestServer } from '../support/app.ts'
import { ask } from '../support/http.ts'
import { waitUntil, within } from '../support/wait.ts'

/** More than the buffers of a connection can hold. */
const size = 24 * 1024 * 1024
const content = Buffer.alloc(size, 'x')

/** A client that reads only when the test tells it to. */
class Reader implements Disposable {
  readonly socket: Socket
  read = 0
  closed = false

  static async open(port: number, localAddress = '127.0.0.1'): Promise<Reader> {
    const reader = new Reader(connect({ port, host: '127.0.0.1', localAddress }))
    await once(reader.socket, 'connect')
    reader.socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n')
    return reader
  }

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {}).pause()
    socket.on('data', chunk => {
      this.read += chunk.length
      socket.emit('news')
    })
    socket.on('close', () => {
      this.closed = true
      socket.emit('news')
    })
  }

  /** Reads this many bytes, or all bytes until the connection ends. */
  async take(bytes: number): Promise<void> {
    const goal = this.read + bytes
    this.socket.resume()
    // Not `once` from node:events, because it would throw when the connection is reset.
    while (this.read < goal && !this.closed) await new Promise(resolve => this.socket.once('news', resolve))
    this.socket.pause()
  }

  [Symbol.dispose](): void {
    this.socket.destroy()
  }
}

/** A server whose clock the test sets, and which checks for stalled connections all the time. */
async function start(
  bounds: Partial<typeof unreadBounds> = {},
  register: (server: FastifyInstance) => void = () => {},
) {
  let time = 0
  let sweeps = 0
  let cut = 0
  const now = () => {
    sweeps++
    return time
  }
  const server = await startTestServer(
    fastify => {
      fastify.get('/large', (_request, reply) => reply.send(content))
      register(fastify)
    },
    { unread: { bounds: { sweepMs: 1, ...bounds }, now }, onCut: () => cut++ },
  )
  return Object.assign(server, {
    cuts: () => cut,
    pass: (milliseconds: number) => {
      time += milliseconds
    },
    /** Waits until all connections were checked once more. */
    swept: async () => {
      const before = sweeps
      await waitUntil(() => sweeps >= before + 2)
    },
    /** Waits until this many connections have unsent data. */
    unsent: (count: number) =>
      waitUntil(() => [...server.lifecycle.connections].filter(each => each.writableLength > 0).length === count),
  })
}

test('a client that reads nothing of its answer for 30 seconds is disconnected', async () => {
  await using server = await start()
  using reader = await Reader.open(server.port)
  await server.unsent(1)
  await server.swept()
  server.pass(unreadBounds.stalledMs - 1)
  await server.swept()
  assert.equal(server.cuts(), 0)
  server.pass(1)
  await server.swept()
  assert.equal(server.cuts(), 1)
  await waitUntil(() => server.lifecycle.connections.size === 0)
  await within(reader.take(2 * size), 'the end')
  assert.ok(reader.read < size, `${reader.read} bytes`)
  assert.equal(server.lifecycle.requestsInFlight, 0)
})

test('a client that reads slowly but steadily gets all of its answer, however long it takes', async () => {
  await using server = await start()
  using reader = await Reader.open(server.port)
  await server.unsent(1)
  const [connection] = server.lifecycle.connections
  const queued = () => (connection as unknown as { _handle: { writeQueueSize: number } | null })._handle?.writeQueueSize
  while ((queued() ?? 0) > 0) {
    const before = queued()
    while (queued() === before) await within(reader.take(65_536), 'bytes')
    await server.swept()
    server.pass(unreadBounds.stalledMs - 1)
    await server.swept()
  }
  await within(reader.take(size - reader.read), 'the rest')
  assert.equal(server.cuts(), 0)
  assert.equal(reader.closed, false)
})

test('a client that reads a part and then nothing more is disconnected', async () => {
  await using server = await start()
  using reader = await Reader.open(server.port)
  await server.unsent(1)
  await within(reader.take(size / 24), 'a part of it')
  await server.swept()
  server.pass(unreadBounds.stalledMs)
  await server.swept()
  assert.equal(server.cuts(), 1)
})

test('connections without unread data are kept: idle ones, ones that wait for an answer, and ones that have read it', async () => {
  const go = Promise.withResolvers<void>()
  await using server = await start({}, fastify => {
    fastify.get('/slow', async () => {
      await go.promise
      return {}
    })
  })
  const slow = ask(`${server.url}/slow`)
  using others = new DisposableStack()
  const idle = others.adopt(connect(server.port, '127.0.0.1'), open => open.destroy())
  await once(idle, 'connect')
  using reader = await Reader.open(server.port)
  await within(reader.take(size), 'all of it')
  await waitUntil(() => server.lifecycle.connections.size === 3 && server.lifecycle.requestsInFlight === 1)
  for (let count = 0; count < 3; count++) {
    await server.swept()
    server.pass(unreadBounds.stalledMs)
  }
  await server.swept()
  go.resolve()
  assert.equal((await slow).status, 200)
  assert.equal(server.cuts(), 0)
})

test('above the limit of unread data of one client its oldest answers are dropped, and not those of others', async () => {
  await using server = await start({ perClient: 2 * size + 100 })
  using readers = new DisposableStack()
  const open = async (address: string) => {
    const reader = readers.use(await Reader.open(server.port, address))
    await within(reader.take(1), 'the beginning') // the connections above the limit are closed by now
    return reader
  }
  const other = await open('127.0.0.2')
  const mine: Reader[] = []
  for (let count = 1; count <= 4; count++) {
    mine.push(await open('127.0.0.1'))
    assert.equal(server.cuts(), Math.max(0, count - 2))
  }
  for (const [index, reader] of [...mine, other].entries()) {
    if (index >= 2) await within(reader.take(size - reader.read), 'all of it')
    else await within(reader.take(2 * size), 'the end')
  }
  assert.deepEqual(
    mine.map(({ closed }) => closed),
    [true, true, false, false],
  )
  assert.equal(other.closed, false)
  // A completely sent answer no longer counts.
  await server.unsent(0)
  await open('127.0.0.1')
  await open('127.0.0.1')
  assert.equal(server.cuts(), 2)
})

test('above the limit of unread data of all clients the oldest answers are dropped', async () => {
  await using server = await start({ inAll: 3 * size + 100 })
  using readers = new DisposableStack()
  const all: Reader[] = []
  for (let count = 1; count <= 5; count++) {
    const reader = readers.use(await Reader.open(server.port, `127.0.0.${count}`))
    await within(reader.take(1), 'the beginning')
    all.push(reader)
    assert.equal(server.cuts(), Math.max(0, count - 3))
  }
  for (const [index, reader] of all.entries()) {
    await within(reader.take(index < 2 ? 2 * size : size - reader.read), 'all there is')
  }
  assert.deepEqual(
    all.map(({ closed }) => closed),
    [true, true, false, false, false],
  )
})

test('answers that are ready in one turn of the event loop are also limited', async () => {
  const perClient = 2 * size + 100
  const go = Promise.withResolvers<void>()
  await using server = await start({ perClient }, fastify => {
    fastify.get('/together', async (_request, reply) => {
      await go.promise
      return reply.send(content)
    })
  })
  const total = 8
  using readers = new DisposableStack()
  for (let count = 0; count < total; count++) {
    const socket = readers.adopt(connect(server.port, '127.0.0.1'), open => open.destroy())
    socket.on('error', () => {}).pause()
    socket.write('GET /together HTTP/1.1\r\nHost: x\r\n\r\n')
  }
  await waitUntil(() => server.lifecycle.requestsInFlight === total)
  let most = 0
  const { connections } = server.lifecycle // connections that are not closed yet, because closing frees their memory
  const unsent = () => [...connections].reduce((sum, { writableLength }) => sum + writableLength, 0)
  for (const connection of connections) {
    const { write } = connection
    connection.write = ((...args: Parameters<typeof write>) => {
      const done = write.apply(connection, args)
      most = Math.max(most, unsent())
      return done
    }) as typeof write
  }
  go.resolve()
  await waitUntil(() => server.cuts() === total - 2)
  await server.unsent(2)
  // The answers within the limit, those that are being closed, and the one that exceeded the limit.
  assert.ok(most >= 2 * size && most <= 2 * perClient + size, `${most / size} answers at once`)
})

test('small answers do not count', async () => {
  await using server = await start({ perClient: size }, fastify => {
    fastify.get('/small', (_request, reply) => reply.send('x'.repeat(unreadBounds.countedFrom - 1)))
  })
  using reader = await Reader.open(server.port)
  await server.unsent(1)
  for (let count = 0; count < 200; count++) assert.equal((await ask(`${server.url}/small`)).status, 200)
  assert.equal(server.cuts(), 0)
  await within(reader.take(size), 'all of it')
})
