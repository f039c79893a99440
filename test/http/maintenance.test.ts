import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { ask, postJson, type RawResponse, sendRaw } from '../support/http.ts'
import { serveDuet } from '../support/process.ts'
import { assertRefusal } from '../support/refusal.ts'
import { waitUntil } from '../support/wait.ts'

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
  assert.ok(!app.logs.some(line => Number(line.level) > 30))
})

test('R-ERR-12: SIGUSR2 turns maintenance on in a running process, and off again', async () => {
  await using duet = serveDuet()
  const { url } = await duet.address()
  const becomes = (status: number) => waitUntil(async () => (await ask(`${url}/metrics`)).status === status)
  await becomes(200)
  duet.child.kill('SIGUSR2')
  await becomes(503)
  assertMaintenance(await ask(`${url}/metrics`))
  assert.equal((await ask(`${url}/health/ready`)).status, 200)
  duet.child.kill('SIGUSR2')
  await becomes(200)
  duet.child.kill('SIGTERM')
  const { code, stdout } = await duet.outcome()
  assert.equal(code, 0)
  assert.deepEqual(stdout.match(/(?<="level":40.*"maintenance":)\w+/g), ['true', 'false'])
})
