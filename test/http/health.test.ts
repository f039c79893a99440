import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { AppError, fault } from '../../src/core/errors.ts'
import type { Store } from '../../src/core/store.ts'
import { serveHealth } from '../../src/http/health.ts'
import { Metrics } from '../../src/http/metrics.ts'
import { startTestServer } from '../support/app.ts'
import { ask, sendRaw } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { within } from '../support/wait.ts'

function startWith(ping: Store['ping'], metrics = new Metrics()) {
  return startTestServer((fastify, lifecycle) => serveHealth(fastify, lifecycle, metrics, { ping }, 1_000))
}

const ready = 'GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n'
const away = 'Service temporarily unavailable. Try again later.'

test('the service is live, and ready if its store responds: otherwise it gets 503 with Retry-After', async () => {
  let error: Error | undefined
  await using server = await startWith(async () => {
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
  let pings = 0
  await using server = await startWith(() => {
    pings++
    return new Promise(() => {})
  })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const answers = [1, 2, 3].map(() => sendRaw(server.port, ready))
  while (server.lifecycle.requestsInFlight < 3) await turn()
  t.mock.timers.tick(999)
  assert.deepEqual([server.lifecycle.requestsInFlight, pings], [3, 1])
  t.mock.timers.tick(1)
  t.mock.timers.reset()
  for (const answer of answers) assertRefusal(await within(answer, 'the answer'), 503, away)
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
