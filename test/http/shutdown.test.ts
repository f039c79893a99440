import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { PassThrough } from 'node:stream'
import { describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { serveHealth } from '../../src/http/health.ts'
import { cutAfterMs, shutDown } from '../../src/http/lifecycle.ts'
import { Metrics } from '../../src/http/metrics.ts'
import { together } from '../runner/together.ts'
import { startTestServer } from '../support/app.ts'
import { ask, isRefused, RawConnection } from '../support/http.ts'
import { freePort } from '../support/ports.ts'
import { DuetProcess, serveDuet } from '../support/process.ts'
import { assertRefusal } from '../support/refusal.ts'
import { testTimeoutMs, waitUntil, within } from '../support/wait.ts'

const live = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n'
const ready = 'GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n'

function startServer() {
  return startTestServer((fastify, lifecycle) => {
    const store = { ping: async () => {} }
    serveHealth(fastify, lifecycle, new Metrics(), store, testTimeoutMs)
    fastify.post('/echo', ({ body }) => ({ body }))
  })
}

const hour = 3_600_000

/** A server, and a connection that has received the beginning of an answer without an end. */
async function startStream() {
  const answer = new PassThrough()
  const server = await startTestServer(fastify => fastify.get('/stream', () => answer))
  const connection = await RawConnection.open(server.port)
  connection.write('GET /stream HTTP/1.1\r\nHost: x\r\n\r\n')
  answer.write('first')
  await waitUntil(() => connection.unread.includes('first'))
  const stop = async () => {
    connection[Symbol.dispose]()
    await server[Symbol.asyncDispose]()
  }
  return { ...server, answer, connection, [Symbol.asyncDispose]: stop }
}

/** The log line of a shutdown that waited for a connection until the timeout. */
const cutting = /closing connections/

test('a shutdown makes the service not ready, stops listening, and answers running requests', async () => {
  await using server = await startServer()
  using slow = await RawConnection.open(server.port)
  slow.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{"a"')
  using kept = await RawConnection.open(server.port)
  kept.write(ready)
  assert.equal((await kept.response()).status, 200)
  await waitUntil(() => server.lifecycle.requestsInFlight === 1)

  let over = false
  server.lifecycle.drainMs = 200
  const shutdown = shutDown(server.server, server.lifecycle).then(() => {
    over = true
  })
  kept.write(ready)
  const refused = await kept.response()
  assertRefusal(refused, 503)
  assert.equal(refused.headers.get('connection'), 'close')
  assert.equal(await kept.closed(), '')

  await waitUntil(() => isRefused(server.port))
  assert.ok(!over, 'the server stopped during a request')
  slow.write(':1} ')
  const answer = await slow.response()
  assert.deepEqual([answer.status, answer.body], [200, '{"body":{"a":1}}'])
  assert.equal(answer.headers.get('connection'), 'close')
  assert.equal(await slow.closed(), '')
  await shutdown
  assert.ok(!slow.wasReset && !kept.wasReset)
})

test('a keep-alive answer that ends during the shutdown does not delay the stop', async () => {
  await using server = await startStream()
  server.lifecycle.drainMs = 1
  const shutdown = shutDown(server.server, server.lifecycle)
  await waitUntil(() => isRefused(server.port))
  server.answer.end('last')
  const response = await server.connection.response()
  assert.deepEqual([response.headers.get('connection'), response.body], ['keep-alive', 'firstlast'])
  await shutdown
  assert.doesNotMatch(JSON.stringify(server.logs), cutting)
})

test('a running request is answered however old its connection is and however long the shutdown takes', async t => {
  await using server = await startServer()
  using slow = await RawConnection.open(server.port)
  slow.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{"a"')
  using unused = await RawConnection.open(server.port)
  await waitUntil(() => server.lifecycle.requestsInFlight === 1 && server.lifecycle.connections.size === 2)
  let later = 60_000
  for (const clock of [performance, Date]) {
    const now = clock.now.bind(clock)
    t.mock.method(clock, 'now', () => now() + later)
  }
  const shutdown = shutDown(server.server, server.lifecycle, hour)
  await waitUntil(() => isRefused(server.port))
  later += 60_000
  assert.equal(await unused.closed(), '')
  slow.write(':1} ')
  assert.equal((await slow.response()).body, '{"body":{"a":1}}')
  await shutdown
  assert.doesNotMatch(JSON.stringify(server.logs), cutting)
})

test('refused bodies also close their connection during the shutdown', async () => {
  await using server = await startServer()
  using connection = await RawConnection.open(server.port)
  connection.write(live)
  await connection.response()
  server.lifecycle.draining = true
  connection.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{')
  const response = await connection.response()
  assertRefusal(response, 400)
  assert.equal(response.headers.get('connection'), 'close')
})

test('an idle server without connections stops at once, whatever its drain time', async () => {
  const server = await startServer()
  server.lifecycle.drainMs = hour
  await within(shutDown(server.server, server.lifecycle), 'the end of an idle server')
})

test('until the server stops listening, new connections are served, each for one request, though there were none before', async () => {
  const cases = [0, 1]
  for (const opened of cases) {
    await using server = await startServer()
    using connections = new DisposableStack()
    const open = async () => connections.use(await RawConnection.open(server.port))
    const earlier = opened === 0 ? [] : [await open()]
    server.lifecycle.drainMs = opened === 0 ? 1 : 200
    const begun = performance.now()
    const shutdown = shutDown(server.server, server.lifecycle)
    for (let turns = 0; turns < 3; turns++) await turn()
    if (opened === 0 && performance.now() - begun > 10) {
      cases.push(0) // without CPU for so long, this process may come too late
      await shutdown
      continue
    }
    for (const connection of [...earlier, await open()]) {
      connection.write(live)
      const response = await connection.response()
      assert.deepEqual([response.status, response.headers.get('connection')], [200, 'close'])
      assert.equal(await connection.closed(), '')
    }
    await shutdown
    assert.ok(await isRefused(server.port))
  }
})

test('a connection that does not end is closed in time, and this is logged', async () => {
  await using server = await startStream()
  await within(shutDown(server.server, server.lifecycle, 100), 'the end of a shutdown after its timeout')
  assert.match(JSON.stringify(server.logs), cutting)
  await server.connection.closed()
  assert.ok(cutAfterMs > 8_000 && cutAfterMs < 9_000, 'requests have eight seconds, and the process ends within ten')
})

// Each of these tests runs its own process.
describe('a process that gets a stop signal', () => {
  const test = together(4)

  test('SIGTERM: a partly sent request is still answered, idle and unused connections are closed, further signals have no effect, then the process exits with 0', async () => {
    await using duet = serveDuet({ DRAIN_MS: '300' })
    const { port } = await duet.address()
    using slow = await RawConnection.open(port)
    slow.write(live.slice(0, -2))
    using kept = await RawConnection.open(port)
    kept.write(ready)
    assert.equal((await kept.response()).status, 200)
    using unused = await RawConnection.open(port)
    duet.child.kill('SIGTERM')
    await waitUntil(() => duet.stdout.includes('"stopping"'))
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGTERM'] as const) duet.child.kill(signal)
    await waitUntil(() => isRefused(port))
    assert.deepEqual([await kept.closed(), await unused.closed()], ['', ''])
    duet.child.kill('SIGTERM')
    slow.write(live.slice(-2))
    const answer = await slow.response()
    assert.deepEqual([answer.status, answer.headers.get('connection')], [200, 'close'])
    const { code, stdout, stderr } = await duet.outcome()
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
    assert.match(stdout, /"stopped"/)
    assert.doesNotMatch(stdout, cutting)
    assert.equal(stdout.split('"stopping"').length, 2)
  })

  test('SIGTERM stops it also while its other threads are starting, and no request is lost', async () => {
    const port = await freePort()
    await using duet = serveDuet({ PORT: String(port), THREADS: '4' })
    await waitUntil(async () => !(await isRefused(port)))
    using connection = await RawConnection.open(port)
    connection.write(live + live.slice(0, -2))
    assert.equal((await connection.response()).status, 200)
    duet.child.kill('SIGTERM')
    await waitUntil(() => duet.stdout.includes('"stopping"'))
    connection.write(live.slice(-2))
    assert.equal((await connection.response()).status, 200)
    const { code, stderr } = await duet.outcome()
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
  })

  test('SIGTERM ends the process even if nobody reads its log', async () => {
    await using duet = serveDuet({ LOG_LEVEL: 'info', RATE_LIMIT_MAX: '0', DRAIN_MS: '0' })
    const { url } = await duet.address()
    duet.child.stdout?.pause()
    const path = `/${'x'.repeat(190)}`
    for (let round = 0; round < 15; round++) {
      await Promise.all(Array.from({ length: 50 }, () => ask(url + path)))
    }
    const exit = once(duet.child, 'exit')
    duet.child.kill('SIGTERM')
    assert.deepEqual(await within(exit, 'the exit'), [0, null])
    duet.child.stdout?.resume()
    assert.doesNotMatch((await duet.outcome()).stdout, /"stopped"/, 'the log was full')
  })

  test('SIGTERM to `npm start` ends npm and the server, both with exit code 0', async () => {
    const env = { PORT: '0', DATABASE_URL: 'sqlite::memory:' }
    await using npm = new DuetProcess('npm start', { env })
    const { port } = await npm.address()
    npm.child.kill('SIGTERM')
    const { code, stdout } = await npm.outcome()
    assert.equal(code, 0)
    assert.match(stdout, /"stopped"/)
    assert.ok(await isRefused(port))
  })

  test('SIGINT stops like SIGTERM, and clients that keep sending meanwhile never get a reset', async () => {
    await using duet = serveDuet({ DRAIN_MS: '500', LOG_LEVEL: 'warn', RATE_LIMIT_MAX: '0' })
    const { url } = await duet.address()
    const agent = new Agent({ keepAlive: true })
    const seen = new Map<string, number>()
    const note = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1)
    const outcomeOfOne = () =>
      new Promise<string>(resolve => {
        get(`${url}/health/live`, { agent }, response => {
          response.resume().once('end', () => resolve(String(response.statusCode)))
          response.once('error', error => resolve(`answer: ${error.message}`))
        }).once('error', error => resolve('code' in error ? String(error.code) : error.message))
      })
    const keepSending = async () => {
      for (let what = ''; what !== 'ECONNREFUSED'; note(what)) what = await outcomeOfOne()
    }
    const clients = Array.from({ length: 32 }, keepSending)
    await waitUntil(() => (seen.get('200') ?? 0) > 200)
    duet.child.kill('SIGINT')
    assert.equal((await duet.outcome()).code, 0)
    await Promise.all(clients)
    agent.destroy()
    assert.deepEqual([...seen.keys()].sort(), ['200', 'ECONNREFUSED'], JSON.stringify([...seen]))
  })
})
