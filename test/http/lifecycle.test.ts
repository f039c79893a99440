import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { AppError, fault } from '../../src/core/errors.ts'
import type { Store } from '../../src/core/store.ts'
import { serveHealth } from '../../src/http/health.ts'
import { cutAfterMs, lastResort, shutDown } from '../../src/http/lifecycle.ts'
import { Metrics } from '../../src/http/metrics.ts'
import { together } from '../runner/together.ts'
import { startTestApp, startTestServer } from '../support/app.ts'
import { ask, isRefused, postJson, RawConnection, type RawResponse, sendRaw } from '../support/http.ts'
import { collectLogs } from '../support/logs.ts'
import { freePort } from '../support/ports.ts'
import { DuetProcess, serveDuet } from '../support/process.ts'
import { assertRefusal } from '../support/refusal.ts'
import { testTimeoutMs, waitUntil, within } from '../support/wait.ts'

const live = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n'
const ready = 'GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n'
const away = 'Service temporarily unavailable. Try again later.'

/** A server with the health routes, and a route that needs a body. */
function startServer(ping: Store['ping'] = async () => {}, metrics = new Metrics(), timeoutMs = testTimeoutMs) {
  return startTestServer((fastify, lifecycle) => {
    serveHealth(fastify, lifecycle, metrics, { ping }, timeoutMs)
    fastify.post('/echo', ({ body }) => ({ body }))
  })
}

test('the service is live, and ready if its store responds: otherwise it gets 503 with Retry-After', async () => {
  let error: Error | undefined
  await using server = await startServer(async () => {
    if (error !== undefined) throw error
  })
  for (const state of ['live', 'ready']) {
    const { status, body } = await ask(`${server.url}/health/${state}`)
    assert.deepEqual([status, JSON.parse(body)], [200, { status: state }])
    assert.equal((await ask(`${server.url}/health/${state}`, { method: 'HEAD' })).status, 200)
  }
  const cause = new Error('hunter2')
  for (error of [new AppError('unavailable', 'Not now.', { cause }), fault(cause), cause]) {
    const response = await ask(`${server.url}/health/ready`)
    assertRefusal(response, 503, away)
    assert.equal(response.headers.get('retry-after'), '1')
    assert.equal((await ask(`${server.url}/health/live`)).status, 200)
  }
})

test('with a store that does not respond in time the service is not ready, and those that ask at once share one write', async t => {
  const ping = t.mock.fn(() => new Promise<never>(() => {}))
  await using server = await startServer(ping, new Metrics(), 1_000)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const answers = [1, 2, 3].map(() => sendRaw(server.port, ready))
  while (server.lifecycle.requestsInFlight < 3) await turn()
  t.mock.timers.tick(999)
  assert.deepEqual([server.lifecycle.requestsInFlight, ping.mock.callCount()], [3, 1])
  t.mock.timers.tick(1)
  t.mock.timers.reset()
  for (const answer of answers) assertRefusal(await within(answer, 'the answer'), 503, away)
})

test('the metrics tell whether the service is ready, though nobody asks for it', async t => {
  const metrics = new Metrics()
  let ping: Store['ping'] = async () => {}
  await using server = await startServer(() => ping(), metrics)
  const told = async () => (await metrics.registry.getSingleMetric('duet_ready')?.get())?.values[0]?.value
  assert.equal(await told(), 1)
  ping = () => Promise.reject(new Error('The disk is full'))
  assert.equal(await told(), 0)
  ping = async () => {}
  assert.equal(await told(), 1)
  server.lifecycle.draining = true
  assert.equal(await told(), 0)
  server.lifecycle.draining = false
  ping = () => new Promise<never>(() => {})
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const late = told()
  t.mock.timers.tick(500) // before the metrics of a thread are given up
  for (let turns = 0; turns < 5; turns++) await turn()
  assert.equal(await Promise.race([late, 'not yet']), 0)
})

function assertMaintenance(response: RawResponse): void {
  assertRefusal(response, 503)
  assert.equal(response.body, '{"error":"Service under maintenance. Try again later."}')
  assert.equal(response.headers.get('retry-after'), '60')
}

test('R-ERR-12: under maintenance every request except health is answered 503 with Retry-After', async () => {
  await using app = await startTestApp({ MAINTENANCE: 'on' })
  const paths = ['/', '/metrics', '/users', '/api/users/1', '/graphql', '/nothing', '/%zz', '/health', '/health/']
  for (const path of paths) {
    assertMaintenance(await ask(app.url + path))
    assertMaintenance(await postJson(app.url + path, '{'))
  }
  assertMaintenance(await ask(`${app.url}/metrics`, { method: 'OPTIONS' }))
  const head =
    'POST /users HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 300\r\n\r\n'
  assertMaintenance(await sendRaw(app.port, head)) // before the body is read
  const headers = { origin: 'http://localhost', 'access-control-request-method': 'DELETE' }
  assert.equal((await ask(`${app.url}/users`, { method: 'OPTIONS', headers })).status, 204)
  const ofPage = await ask(`${app.url}/users`, { headers })
  assertMaintenance(ofPage)
  assert.equal(ofPage.headers.get('access-control-allow-origin'), 'http://localhost') // so the page can read it
  assert.ok(!app.logs.some(line => Number(line.level) > 30))
})

const hour = 3_600_000

/** A server, and a connection that has received the beginning of an answer without an end. */
async function startStream() {
  const answer = new PassThrough()
  const server = await startTestServer(fastify => fastify.get('/stream', () => answer))
  const connection = await RawConnection.open(server.port)
  connection.write('GET /stream HTTP/1.1\r\nHost: x\r\n\r\n')
  answer.write('first')
  await waitUntil(() => connection.unread.includes('first'))
  return { ...server, answer, connection }
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

  server.lifecycle.drainMs = 200
  const shutdown = shutDown(server.server, server.lifecycle)
  kept.write(ready)
  const refused = await kept.response()
  assertRefusal(refused, 503)
  assert.equal(refused.headers.get('connection'), 'close')
  assert.equal(await kept.closed(), '')

  await waitUntil(() => isRefused(server.port))
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
  const [begun, now] = [performance.now(), Date.now.bind(Date)]
  t.mock.method(performance, 'now', () => begun + later)
  t.mock.method(Date, 'now', () => now() + later)
  server.lifecycle.drainMs = hour
  const shutdown = shutDown(server.server, server.lifecycle, 3 * hour)
  using late = await RawConnection.open(server.port)
  await waitUntil(() => server.lifecycle.connections.size === 3)
  later += hour
  await waitUntil(() => isRefused(server.port).finally(() => (later += 50)))
  late.write(live)
  assert.equal((await late.response()).status, 200, 'a connection that came last has a second for its request')
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

test('a stop that is asked for again waits for the same requests', async () => {
  await using app = await startTestApp({ THREADS: '1' })
  using slow = await RawConnection.open(app.port)
  slow.write('POST /users HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n')
  assert.equal((await slow.response()).status, 100)
  void app.app[Symbol.asyncDispose]()
  const again = app.app.stopAtOnce().then(() => 'stopped')
  assert.equal(await Promise.race([again, turn('running')]), 'running')
})

// Each of these tests runs its own process.
describe('a process that gets a stop signal', () => {
  const test = together(4)

  test('SIGTERM stops it also while its other threads are starting, no request is lost, and further signals have no effect', async () => {
    const port = await freePort()
    await using duet = serveDuet({ PORT: String(port), THREADS: '4' })
    await waitUntil(async () => !(await isRefused(port)))
    using connection = await RawConnection.open(port)
    connection.write(live + live.slice(0, -2))
    assert.equal((await connection.response()).status, 200)
    duet.child.kill('SIGTERM')
    await waitUntil(() => duet.stdout.includes('"stopping"'))
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGTERM'] as const) duet.child.kill(signal)
    await waitUntil(() => isRefused(port))
    duet.child.kill('SIGTERM')
    connection.write(live.slice(-2))
    const answer = await connection.response()
    assert.deepEqual([answer.status, answer.headers.get('connection')], [200, 'close'])
    const { code, stdout, stderr } = await duet.outcome()
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
    assert.match(stdout, /"stopped"/)
    assert.doesNotMatch(stdout, cutting)
    assert.equal(stdout.split('"stopping"').length, 2)
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
    const seen = new Map<string, number>()
    const note = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1)
    const outcomeOfOne = () =>
      ask(`${url}/health/live`).then(
        ({ status }) => String(status),
        error => String(error.code ?? error.message),
      )
    const keepSending = async () => {
      for (let what = ''; what !== 'ECONNREFUSED'; note(what)) what = await outcomeOfOne()
    }
    const clients = Array.from({ length: 32 }, keepSending)
    await waitUntil(() => (seen.get('200') ?? 0) > 200)
    duet.child.kill('SIGINT')
    assert.equal((await duet.outcome()).code, 0)
    await Promise.all(clients)
    assert.deepEqual([...seen.keys()].sort(), ['200', 'ECONNREFUSED'], JSON.stringify([...seen]))
  })
})

/** Loaded before the program: signals cause errors that nobody handles. */
const plant = `import { isMainThread } from 'node:worker_threads'
  const plantedFault = () => { throw new Error('a planted fault') }
  if (isMainThread) process.on('SIGWINCH', () => setTimeout(plantedFault)).on('SIGCONT', async () => plantedFault())`

/** Each with the signal that causes it. */
const unhandled = { 'an uncaught error': 'SIGWINCH', 'an unhandled rejection': 'SIGCONT' } as const

for (const [what, signal] of Object.entries(unhandled)) {
  test(`${what} is logged once and stops listening at once, a running request is answered, and the process exits with 1`, async () => {
    const drainMs = 8_000 // the exit does not wait for it
    await using duet = serveDuet({
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(plant)}`,
      DRAIN_MS: String(drainMs),
    })
    const { port } = await duet.address()
    using slow = await RawConnection.open(port)
    const body = '{"name":"Ada","email":"ada@example.com"}'
    const head = `POST /users HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`
    slow.write(`${head}Expect: 100-continue\r\n\r\n`)
    assert.equal((await slow.response()).status, 100)
    const begun = performance.now()
    duet.child.kill(signal)
    await waitUntil(async () => (await isRefused(port)) || performance.now() - begun > drainMs)
    assert.ok(performance.now() - begun < drainMs, 'it continued to listen')
    slow.write(body)
    const answer = await within(slow.response(), 'the answer')
    assert.deepEqual([answer.status, answer.headers.get('connection')], [201, 'close'])
    const { code, stdout, stderr } = await duet.outcome()
    assert.deepEqual({ code, stderr }, { code: 1, stderr: '' })
    const lines = stdout.split('\n').filter(line => line.startsWith('{'))
    const [fatal, ...more] = lines.map(line => JSON.parse(line)).filter(({ level }) => level === 60)
    assert.deepEqual([fatal.msg, fatal.err.message, more], ['Unhandled error: stopping', 'a planted fault', []])
    assert.match(fatal.err.stack, /plantedFault/)
  })
}

test('a second unhandled error ends the process at once, a stop that hangs after the timeout, and one that fails at once', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { logger, logs } = collectLogs()
  const exits: string[] = []
  const failing = (name: string, stop: () => Promise<void>) => {
    const fail = lastResort(logger, stop, code => exits.push(`${name}: ${code}`))
    fail(new Error('one'))
    return fail
  }
  let stops = 0
  const hang = () => new Promise<never>(() => stops++)
  const fail = failing('twice', hang)
  await turn()
  assert.deepEqual([stops, exits], [1, []])
  fail('two')
  assert.deepEqual([stops, exits], [1, ['twice: 1']])
  const told = logs.map(({ level, msg }) => `${level} ${msg}`)
  assert.deepEqual(told, ['60 Unhandled error: stopping', '60 Another unhandled error: exiting'])
  failing('hangs', hang)
  failing('fails', () => Promise.reject(new Error('cannot stop')))
  await turn()
  t.mock.timers.tick(9_999)
  assert.deepEqual(exits, ['twice: 1', 'fails: 1'])
  t.mock.timers.tick(1)
  assert.ok(exits.includes('hangs: 1'))
})
