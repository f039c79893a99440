import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startTestApp } from '../support/app.ts'
import { ask } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'

const client = join(import.meta.dirname, '..', '..', 'client')
const script = readFileSync(join(client, 'dist', 'duet-client.js'), 'utf8')
const mostBytes = 12 * 1024

test('the client is one small module that imports nothing', () => {
  assert.doesNotMatch(script, /\bimport\b/)
  const bytes = gzipSync(script).length
  assert.ok(bytes <= mostBytes, `${bytes} bytes`)
  const { dependencies } = JSON.parse(readFileSync(join(client, 'package.json'), 'utf8'))
  assert.equal(dependencies, undefined)
})

test('GET /client.js is the client for pages of any allowed origin, and browsers revalidate it', async () => {
  await using app = await startTestApp({ RATE_LIMIT_MAX: '0', CORS_ORIGINS: '*' })
  const headers = { origin: 'https://app.example' }
  const served = await ask(`${app.url}/client.js`, { headers })
  assert.deepEqual([served.status, served.body], [200, script])
  assert.equal(served.headers.get('content-type'), 'text/javascript; charset=utf-8')
  assert.equal(served.headers.get('cache-control'), 'no-cache')
  assert.equal(served.headers.get('access-control-allow-origin'), '*')
  const known = { ...headers, 'if-none-match': served.headers.get('etag') ?? assert.fail() }
  assert.equal((await ask(`${app.url}/client.js`, { headers: known })).status, 304)
  for (const path of ['/client', '/client/dist/duet-client.js', '/index.d.ts', '/client/package.json']) {
    assertRefusal(await ask(app.url + path), 404, 'Not found')
  }
})

test('with EXPLORERS=off there is no /client.js', async () => {
  await using app = await startTestApp({ EXPLORERS: 'off' })
  assertRefusal(await ask(`${app.url}/client.js`), 404, 'Not found')
})
