import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { pipelineLength } from '../../src/http/connections.ts'
import { startTestApp, startTestServer } from '../support/app.ts'
import { ask, RawConnection, sendRaw } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { upgradeLines } from '../support/sockets.ts'
import { waitUntil, within } from '../support/wait.ts'

const get = (path: string, head = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${head}\r\n`
const json = 'Host: x\r\nX-Request-Id: mine-1\r\nContent-Type: application/json\r\n'
const post = `POST /echo HTTP/1.1\r\n${json}`

/** A server whose answers to `/slow` wait for the test. It records the requests that it started, in order. */
async function start(prepare: (server: FastifyInstance) => void = () => {}) {
  const begun: string[] = []
  const received: unknown[] = []
  const { promise, resolve: go } = Promise.withResolvers<void>()
  const server = await startTestServer(fastify => {
    prepare(fastify)
    fastify.addHook('onRequest', (request, _reply, next) => {
      begun.push(request.url)
      next()
    })
    fastify.get('/slow', () => promise.then(() => ({ slow: true })))
    fastify.get('/:name', ({ params }) => params)
    fastify.post('/echo', ({ body }) => received.push(body) && body)
  })
  return Object.assign(server, { begun, received, go })
}

/** The data that a client had sent before it leaves. The first two are no requests. */
const sent = {
  'before its headers are complete': 'GET / HTTP/1.1\r\nHos',
  'after it asked for a tunnel': 'CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n',
  'in the middle of a body': `${post}Content-Length: 100\r\n\r\n{"a"`,
  'before any of its body': `${post}Content-Length: 100\r\n\r\n`,
  'in the middle of a chunk': `${post}Transfer-Encoding: chunked\r\n\r\n64\r\n{"a"`,
  'while it was answered': get('/slow'),
}

const ways = {
  resets: (connection: RawConnection) => connection.reset(),
  closes: (connection: RawConnection) => connection[Symbol.dispose](),
  'half-closes': (connection: RawConnection) => connection.finish(),
}

test('a client that leaves in any way and at any moment causes no internal error, and without complete headers it was no request', async () => {
  for (const [at, [when, bytes]] of Object.entries(sent).entries()) {
    for (const [how, leave] of Object.entries(ways)) {
      const left = `${how} its connection ${when}`
      const requests = at < 2 ? 0 : 1
      await using server = await start()
      const { lifecycle } = server
      using connection = await RawConnection.open(server.port)
      connection.write(bytes)
      await waitUntil(() => [...lifecycle.connections].some(({ bytesRead }) => bytesRead > 0))
      await waitUntil(() => lifecycle.requestsInFlight === requests)
      leave(connection)
      await waitUntil(() => lifecycle.requestsInFlight + lifecycle.connections.size === 0)
      server.go()
      assert.equal((await ask(`${server.url}/a`)).status, 200, left)
      const noted = server.logs.filter(({ msg }) => msg === 'the client disconnected before the answer was sent')
      assert.equal(noted.length, requests, left)
      const unusual = server.logs.filter(({ level, status }) => Number(level) > 30 || status === 500)
      assert.deepEqual([unusual, server.received], [[], []], left)
    }
  }
})

describe('Timeouts', () => {
  const unfinished = {
    'no byte at all': '',
    'half a request line': 'GET / HT',
    'half a head': 'GET / HTTP/1.1\r\nHost: x\r\n',
    'half a body': `${post}Content-Length: 9\r\n\r\n{"a"`,
    'half a chunk': `${post}Transfer-Encoding: chunked\r\n\r\n9\r\n{`,
  }

  it('a request that is sent in part, or not at all, is answered with 408 and its id, the connection is closed, and no internal error; an idle connection is not late', async () => {
    const hasty = { headersTimeout: 500, requestTimeout: 800, connectionsCheckingInterval: 10 }
    await using server = await start(fastify => Object.assign(fastify.server, hasty))
    using idle = await RawConnection.open(server.port)
    const isServed = async () => {
      idle.write(get('/a'))
      assert.equal((await idle.response()).status, 200)
    }
    await isServed()
    const late = async ([what, bytes]: [string, string]) => {
      using connection = await RawConnection.open(server.port)
      connection.write(bytes)
      const response = await connection.response()
      assertRefusal(response, 408, 'Request was not received in time')
      if (bytes.includes('mine-1')) assert.equal(response.headers.get('x-request-id'), 'mine-1')
      assert.equal(await connection.closed(), '', what)
    }
    await Promise.all(Object.entries(unfinished).map(late))
    await isServed()
    assert.deepEqual(server.received, [])
    assert.ok(!server.logs.some(line => Number(line.level) > 30 || line.status === 500))
  })

  it('the timeouts of the app: 10 s for the headers, 30 s for a request, 72 s between two requests', async () => {
    await using running = await startTestServer(() => {})
    const { headersTimeout, requestTimeout, keepAliveTimeout } = running.server.server
    assert.deepEqual([headersTimeout, requestTimeout, keepAliveTimeout], [10_000, 30_000, 72_000])
  })
})

const smuggled = get('/smuggled')
const chunked = `${post}Transfer-Encoding: chunked\r\n\r\n`
const chunks = '2;x\r\n{}\r\n0\r\n\r\n'

const lengths = ['2\r\nContent-Length: 3', '2\r\nContent-Length: 2', '2, 2', '+2', '0x2', '9'.repeat(23)]
const codings = [
  ...['gzip, chunked', 'chunked, gzip', 'xchunked', 'identity', 'chunked\r\nTransfer-Encoding: identity'],
  ...['\r\n chunked', 'chunked\r\nContent-Length: 4'],
]
const fields = [
  ...['A: b\r\n c', 'A: b\r\n\tc', 'A: b\0c', 'A: b\rB: c', 'Host: y', 'Transfer-Encoding: identity'],
  'Content-Length: 4\r\nTransfer-Encoding: chunked',
]
/** The same request with a bare LF instead of one of its line ends, for each of them. */
const whole = `${chunked.replace('Host', 'A:\r\nHost')}${chunks}`
const bare = Array.from(whole.matchAll(/\r/g), ({ index }) => whole.slice(0, index) + whole.slice(index + 1))

/** Requests that two programs may interpret differently, or that no program should accept. */
const malformed: readonly (string | Uint8Array)[] = [
  ...lengths.map(length => `${post}Content-Length: ${length}\r\n\r\n{}${smuggled}`),
  ...codings.map(coding => `${post}Transfer-Encoding: ${coding}\r\n\r\n${chunks}${smuggled}`),
  `${post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}${smuggled}`,
  `${post}Transfer-Encoding : chunked\r\n\r\n${chunks}`,
  `${post}Host: y\r\nContent-Length: 2\r\n\r\n{}${smuggled}`,
  `POST /a HTTP/1.0\r\n${json}Transfer-Encoding: chunked\r\n\r\n${chunks}${smuggled}`,
  ...bare,
  whole.replaceAll('\r', ''),
  ...fields.map(field => `GET /a HTTP/1.1\r\nHost: x\r\n${field}\r\n\r\n${smuggled}`),
  'GET /a HTTP/1.1\r\n Host: x\r\n\r\n',
  'GET /a HTTP/1.1\r\n\r\n',
  `${chunked}2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n`,
  ...['FFFFFFFFFFFFFFFFF', '-2'].map(size => `${chunked}${size}\r\n{}\r\n0\r\n\r\n`),
  ...['GET /a HTTP/1.2', 'FOO /a HTTP/1.1', 'get /a HTTP/1.1'].map(line => `${line}\r\nHost: x\r\n\r\n`),
  Uint8Array.of(0, 1, 2, 0xff, 0xfe, 13, 10, 13, 10),
  Buffer.from('1603010200010001fc0303', 'hex'), // the start of TLS
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', // the preface of HTTP/2
  Buffer.from('GET /th\xff HTTP/1.1\r\nHost: x\r\n\r\n', 'latin1'),
]

const otherwiseRefused: readonly (readonly [status: number, bytes: string])[] = [
  [431, `GET /a HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`],
  [431, `GET /a HTTP/1.1\r\nHost: x\r\n${'A: b\r\n'.repeat(3_500)}\r\n`],
  [431, `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
  [431, `${chunked}2\r\n{}\r\n0\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`],
  [413, `${chunked}2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`],
  ...[smuggled, smuggled.replace('\r\n\r\n', '\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')].map(
    next => [417, `${post}Expect: x\r\nContent-Length: 2\r\n\r\n{}${next}`] as const,
  ),
  [505, `GET /a HTTP/2.0\r\nHost: x\r\n\r\n${smuggled}`],
  [505, 'GET /a HTTP/0.9\r\n\r\n'],
  [501, 'CONNECT thing:80 HTTP/1.1\r\nHost: x\r\n\r\n'],
]

describe('Requests on the wire:', () => {
  it('what is doubtful or too large is refused with its status, nothing is executed, and the connection is closed', async () => {
    await using server = await start()
    for (const [status, bytes] of [...malformed.map(each => [400, each] as const), ...otherwiseRefused]) {
      const what = String(bytes).slice(0, 200)
      using connection = await RawConnection.open(server.port)
      connection.write(bytes)
      const response = await connection.response()
      assert.equal(response.status, status, what)
      assertRefusal(response, status)
      assert.equal(response.headers.get('connection'), 'close', what)
      assert.equal(await connection.closed(), '', `${what}: there was a second answer`)
      const executed = [...server.received, ...server.begun.filter(url => url !== '/echo')]
      assert.deepEqual([connection.wasReset, executed], [false, []], what)
      assert.ok(!server.logs.some(line => Number(line.level) > 30), what)
    }
  })

  it('HTTP/1.0 without Host, a header named __proto__ and Expect: 100-continue are served as usual', async () => {
    await using server = await start(fastify => {
      const inspect = ({ headers }: FastifyRequest) => Object.getPrototypeOf(headers) === Object.prototype
      fastify.get('/headers', request => ({ plain: inspect(request), polluted: 'x' in {} }))
    })
    const names = ['__proto__', 'constructor', 'prototype', 'toString'].map(name => `${name}: x\r\n`).join('')
    const named = await sendRaw(server.port, `GET /headers HTTP/1.1\r\nHost: x\r\n${names}\r\n`)
    assert.deepEqual([named.status, JSON.parse(named.body)], [200, { plain: true, polluted: false }])
    assert.equal((await sendRaw(server.port, 'GET /a HTTP/1.0\r\n\r\n')).status, 200)
    using connection = await RawConnection.open(server.port)
    connection.write(`${post}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`)
    assert.equal((await connection.response()).status, 100)
    connection.write('{}')
    assert.equal((await connection.response()).status, 200)
  })

  it('a refused client that continues sending is read for a second, so that it gets the response and not a reset, and then disconnected', async t => {
    for (const bytes of ['rubbish\r\n\r\n', `${upgradeLines({}, '/none/here').join('\r\n')}\r\n\r\n`]) {
      await using server = await start()
      using connection = await RawConnection.open(server.port)
      t.mock.timers.enable({ apis: ['setTimeout'] })
      connection.write(bytes)
      assertRefusal(await connection.response(), bytes.startsWith('GET') ? 404 : 400)
      const [socket] = server.lifecycle.connections
      connection.write('more rubbish')
      while (!socket?.destroyed && (socket?.bytesRead ?? 0) <= bytes.length) await turn()
      t.mock.timers.tick(999)
      assert.equal(socket?.destroyed, false)
      t.mock.timers.tick(1)
      assert.equal(socket?.destroyed, true)
      t.mock.timers.reset()
    }
  })
})

describe('Pipelined requests', () => {
  it('are processed one after the other, and answered in order', async () => {
    await using server = await start()
    using connection = await RawConnection.open(server.port)
    const body = '{"a":1}'
    connection.write(`${get('/slow')}${get('/a')}${post}Content-Length: ${body.length}\r\n\r\n${body}${get('/b')}`)
    await waitUntil(() => server.begun.length > 0)
    assert.equal((await ask(`${server.url}/other`)).status, 200)
    assert.deepEqual(server.begun, ['/slow', '/other'])
    server.go()
    for (const expected of ['{"slow":true}', '{"name":"a"}', body, '{"name":"b"}'])
      assert.equal((await connection.response()).body, expected)
    assert.deepEqual(server.begun, ['/slow', '/other', '/a', '/echo', '/b'])
    // Those that were answered no longer wait.
    for (let packets = 0; packets < 2; packets++) {
      connection.write(get('/a').repeat(pipelineLength + 1))
      for (let count = 0; count <= pipelineLength; count++) assert.equal((await connection.response()).status, 200)
    }
  })

  it('close their connection if more than 100 wait, and none of these is processed, as of one that its client resets', async () => {
    for (const waiting of [pipelineLength + 1, 2]) {
      await using server = await start()
      using connection = await RawConnection.open(server.port)
      connection.write(get('/slow') + get('/a').repeat(waiting))
      await waitUntil(() => server.begun.length > 0)
      if (waiting === 2) connection.reset()
      else assert.equal(await within(connection.closed(), 'the end'), '')
      await waitUntil(() => server.lifecycle.connections.size === 0)
      server.go()
      assert.equal((await ask(`${server.url}/other`)).status, 200)
      assert.deepEqual(server.begun, ['/slow', '/other'])
    }
  })

  it('after an answer that closes the connection are not processed', async () => {
    await using server = await start()
    using connection = await RawConnection.open(server.port)
    connection.write(get('/a', 'Connection: close\r\n') + get('/b'))
    assert.equal((await connection.response()).body, '{"name":"a"}')
    assert.equal(await connection.closed(), '')
    assert.deepEqual(server.begun, ['/a'])
  })

  it('before a malformed one keep their own answers, and nothing follows these', async () => {
    await using server = await start()
    using connection = await RawConnection.open(server.port)
    connection.write(`${get('/slow')}rubbish\r\n\r\n`)
    await waitUntil(() => server.begun.length > 0)
    connection.write('more rubbish\r\n\r\n')
    setImmediate(server.go)
    const { body, headers } = await connection.response()
    assert.deepEqual([body, headers.get('connection')], ['{"slow":true}', 'close'])
    assert.equal(await connection.closed(), '')
  })

  it('before a tunnel is asked for keep their own answers', async () => {
    await using server = await start()
    using connection = await RawConnection.open(server.port)
    connection.write(`${get('/slow')}${get('/a')}CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n`)
    await waitUntil(() => server.begun.length > 0)
    server.go()
    for (const expected of ['{"slow":true}', '{"name":"a"}']) assert.equal((await connection.response()).body, expected)
    assert.equal(await connection.closed(), '')
  })
})

/** Connections that stay open until the test ends. */
function connections(port: number) {
  const stack = new DisposableStack()
  const open = async (localAddress?: string) => stack.use(await RawConnection.open(port, localAddress))
  /** The first bytes of an answer on a new connection; empty if the connection is closed instead. */
  const answer = async (text: string, localAddress?: string): Promise<string> => {
    const connection = await open(localAddress)
    connection.write(text)
    await connection.until(() => connection.unread !== '')
    return connection.unread
  }
  const isServed = async (localAddress?: string, head?: string) =>
    (await answer(get('/users', head), localAddress)) !== ''
  return { open, answer, isServed, [Symbol.dispose]: () => stack.dispose() }
}

describe('With CONNECTIONS_PER_CLIENT', () => {
  it('a connection beyond it is closed at once, other clients have their own limit, and a closed connection makes room', async () => {
    await using app = await startTestApp({ CONNECTIONS_PER_CLIENT: '3' })
    using clients = connections(app.port)
    const first = await clients.open()
    const served = [await clients.isServed(), await clients.isServed(), await clients.isServed()]
    assert.deepEqual([...served, await clients.isServed('127.0.0.2')], [true, true, false, true])
    first[Symbol.dispose]()
    await waitUntil(() => clients.isServed()) // the service notices the close a moment later
    using other = await RawConnection.open(app.port, '127.0.0.3')
    other.write(get('/metrics'))
    assert.match((await other.response()).body, /^duet_connections_refused_total [1-9]/m)
  })

  it('a WebSocket request that is refused still counts as a connection, and an open WebSocket does not', async () => {
    await using app = await startTestApp({ CONNECTIONS_PER_CLIENT: '1' })
    using clients = connections(app.port)
    const upgrade = (version: string) => `${upgradeLines({ 'Sec-WebSocket-Version': version }).join('\r\n')}\r\n\r\n`
    // The connection stays open until the client closes it, too, at most for a second.
    assert.match(await clients.answer(upgrade('12')), /^HTTP\/1.1 400 /)
    assert.equal(await clients.isServed(), false)
    using socket = await clients.open('127.0.0.2')
    socket.write(upgrade('13'))
    assert.equal((await socket.response()).status, 101)
    assert.ok(await clients.isServed('127.0.0.2'))
    socket[Symbol.dispose]()
    using other = await RawConnection.open(app.port, '127.0.0.3')
    await waitUntil(async () => {
      other.write(get('/metrics'))
      return (await other.response()).body.includes('\nduet_sockets 0\n')
    })
    assert.equal(await clients.isServed('127.0.0.2'), false, 'nor does the end of one count')
  })

  it('connections of a trusted proxy are not counted', async () => {
    await using app = await startTestApp({ CONNECTIONS_PER_CLIENT: '1', TRUST_PROXY: '127.0.0.1' })
    using clients = connections(app.port)
    for (let count = 0; count < 5; count++) assert.ok(await clients.isServed('127.0.0.1'))
    assert.ok(await clients.isServed('127.0.0.2'))
    assert.equal(await clients.isServed('127.0.0.2', 'X-Forwarded-For: 192.0.2.1\r\n'), false)
  })
})
