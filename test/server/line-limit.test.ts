import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LineLimit, refusedLinesPerSecond } from '../../src/server/line-limit.ts'
import { startTestApp, startTestServer } from '../support/app.ts'
import { sendRaw } from '../support/http.ts'
import { waitUntil } from '../support/wait.ts'

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

test('requests that the rate limit refuses or does not count, and malformed ones, give at most 100 log lines a second together', async () => {
  await using app = await startTestApp({ RATE_LIMIT_MAX: '100', RATE_LIMIT_PATHS: '/' })
  const head = ' HTTP/1.1\r\nHost: localhost\r\n\r\n'
  for (let n = 0; n < 100; n++) await sendRaw(app.port, `GET /users${head}`)
  const before = app.logs.length
  const started = performance.now()
  const kinds = ['GET /users', 'OPTIONS /users', 'GET /', 'GET /health/live', 'GET /metrics']
  for (let n = 0; n < 60; n++) {
    for (const kind of kinds) await sendRaw(app.port, kind + head)
    await sendRaw(app.port, 'no request\r\n\r\n')
  }
  const seconds = Math.ceil((performance.now() - started) / 1000) + 1
  const lines = app.logs.slice(before)
  const leftOut = lines.reduce((sum, line) => sum + Number(line.leftOut ?? 0), 0)
  assert.ok(lines.length <= seconds * refusedLinesPerSecond, `${lines.length} lines in ${seconds} seconds`)
  assert.ok(lines.length + leftOut <= 360)
})

test('OPTIONS and the routes that the rate limit exempts have no line above the limit, and others have theirs', async () => {
  await using server = await startTestServer(
    fastify => {
      fastify.get('/users', () => [])
      fastify.get('/exempt', { config: { unlimited: true } }, () => [])
    },
    { refusedLines: 0 },
  )
  for (const line of ['OPTIONS /users', 'GET /exempt', 'OPTIONS /exempt', 'GET /users'])
    await sendRaw(server.port, `${line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  await waitUntil(() => server.logs.some(({ method, path }) => method === 'GET' && path === '/users'))
  const answered = server.logs.filter(({ msg }) => msg === 'answered')
  assert.deepEqual(
    answered.map(({ method, path }) => [method, path]),
    [['GET', '/users']],
  )
})
