import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LineLimit, refusedLinesPerSecond } from '../../src/server/line-limit.ts'
import { startTestApp } from '../support/app.ts'
import { sendRaw } from '../support/http.ts'

test('log lines above the limit of a second are left out, and the next line tells how many', () => {
  let now = 500
  const limit = new LineLimit(3, () => now)
  const lines: object[] = []
  const log = () => limit.pass(more => lines.push(more))
  for (let n = 0; n < 10; n++) log()
  assert.deepEqual(lines, [{}, {}, {}])
  now = 1_000
  log()
  log()
  assert.deepEqual(lines.slice(3), [{ leftOut: 7 }, {}])
})

test('requests above the rate limit and malformed ones give at most 100 log lines a second together', async () => {
  await using app = await startTestApp({ RATE_LIMIT_MAX: '1', RATE_LIMIT_PATHS: '/' })
  const requests = 'GET /users HTTP/1.1\r\nHost: x\r\n\r\n'
  const started = performance.now()
  for (let n = 0; n < 120; n++) {
    await sendRaw(app.port, requests)
    await sendRaw(app.port, 'no request\r\n\r\n')
  }
  const seconds = Math.ceil((performance.now() - started) / 1000) + 1
  const refused = app.logs.filter(({ status }) => status === 429 || status === 400)
  const leftOut = refused.reduce((sum, line) => sum + Number(line.leftOut ?? 0), 0)
  assert.ok(refused.length <= seconds * refusedLinesPerSecond)
  assert.ok(refused.length + leftOut <= 239)
})
