import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError, fault } from '../../src/core/errors.ts'
import type { Store } from '../../src/core/store.ts'
import { serveHealth } from '../../src/http/health.ts'
import { Metrics } from '../../src/http/metrics.ts'
import { startTestApp, startTestServer } from '../support/app.ts'
import { ask, sendRaw } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { waitUntil, within } from '../support/wait.ts'

function startWith(ping: Store['ping'], metrics = new Metrics()) {
  return startTestServer((fastify, lifecycle) => serveHealth(fastify, lifecycle, metrics, { ping }, 1_000))
}

const ready = 'GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n'
const away = 'Service temporarily unavailable. Try again later.'

test('a running service is live, and ready if its store responds', async () => {
  await using app = await startTestApp()
  for (const state of ['live', 'ready']) {
    const { status, body } = await ask(`${app.url}/health/${state}`)
    assert.deepEqual([status, JSON.parse(body)], [200, { status: state }])
    assert.equal((await ask(`${app.url}/health/${state}`, { method: 'HEAD' })).status, 200)
  }
})

for (const error of [
  new AppError('unavailable', 'Not now.', { cause: new Error('hunter2') }),
  fault(new Error('hunter2')),
  new Error('hunter2'),
]) {
  test(`with a failing store (${error.message}) the service is live but not ready: 503 with Retry-After`, async () => {
    await using server = await startWith(() => Promise.reject(error))
    const response = await ask(`${server.url}/health/ready`)
    assertRefusal(response, 503, away)
    assert.equal(response.headers.get('retry-after'), '1')
    assert.equal((await ask(`${server.url}/health/live`)).status, 200)
  })
}

test('with a store that does not respond in time the service is not ready', async t => {
  const asked = Promise.withResolvers<void>()
  await using server = await startWith(() => {
    asked.resolve()
    return new Promise(() => {})
  })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const answer = sendRaw(server.port, ready)
  await within(asked.promise, 'the store to be asked')
  t.mock.timers.tick(999)
  assert.equal(server.lifecycle.requestsInFlight, 1)
  t.mock.timers.tick(1)
  t.mock.timers.reset()
  assertRefusal(await within(answer, 'the answer'), 503, away)
})

test('the metrics tell whether the service is ready, though nobody asks for it', async () => {
  const metrics = new Metrics()
  let ping: Store['ping'] = async () => {}
  await using server = await startWith(() => ping(), metrics)
  const told = async () => (await metrics.registry.getSingleMetric('duet_ready')?.get())?.values[0]?.value
  assert.equal(await told(), 1)
  ping = () => Promise.reject(new Error('The disk is full'))
  assert.equal(await told(), 0)
  ping = async () => {}
  assert.equal(await told(), 1)
  server.lifecycle.draining = true
  assert.equal(await told(), 0)
  server.lifecycle.draining = false
  const { promise, resolve } = Promise.withResolvers<void>()
  ping = () => promise
  assert.equal(await told(), 0) // before the metrics of a thread are given up
  resolve()
})

test('those that ask at the same time whether the service is ready share one write', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let pings = 0
  await using server = await startWith(() => {
    pings++
    return promise
  })
  const answers = Promise.all([1, 2, 3].map(() => ask(`${server.url}/health/ready`)))
  await waitUntil(() => server.lifecycle.requestsInFlight === 3)
  resolve()
  assert.deepEqual(
    (await answers).map(({ status }) => status),
    [200, 200, 200],
  )
  assert.equal(pings, 1)
})
