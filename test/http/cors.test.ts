import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestServer } from '../support/app.ts'
import { type Asked, ask, type RawResponse } from '../support/http.ts'

const app1 = 'https://app.example'
const app2 = 'https://other.example:8443'
const evil = 'https://evil.example'

/** All headers that a page may need. They are listed here so that none gets lost. */
const exposed =
  'ETag, Location, Link, Retry-After, RateLimit, RateLimit-Policy, Idempotent-Replayed, WWW-Authenticate, X-Request-Id'

function startServer(...corsOrigins: string[]) {
  return startTestServer(
    fastify => {
      fastify.get('/thing', () => ({ ok: true }))
      fastify.get('/broken', () => Promise.reject(new Error('broken')))
    },
    { corsOrigins },
  )
}

function allowHeaders({ headers }: RawResponse): string[] {
  return [...headers.keys()].filter(name => name.startsWith('access-control-allow'))
}

function from(origin: string, more: Record<string, string> = {}): Asked {
  return { headers: { origin, ...more } }
}

const preflight = (origin: string): Asked => ({
  method: 'OPTIONS',
  ...from(origin, { 'access-control-request-method': 'DELETE', 'access-control-request-headers': 'authorization' }),
})

test('by default any origin may read answers, errors included, and their important headers', async () => {
  await using app = await startServer('*')
  for (const path of ['/thing', '/nothing', '/%zz', '/broken']) {
    const { headers } = await ask(app.url + path, from(evil))
    assert.equal(headers.get('access-control-allow-origin'), '*')
    assert.equal(headers.get('access-control-expose-headers'), exposed)
    assert.equal(headers.get('vary'), 'Origin')
    assert.ok(!headers.has('access-control-allow-credentials'))
  }
})

test('with a list, only its origins may read answers and get 204 to a preflight on any path, each with its own origin in the header', async () => {
  await using app = await startServer(app1, app2)
  for (const origin of [app1, app2]) {
    for (const path of ['/thing', '/nothing']) {
      const { headers } = await ask(app.url + path, from(origin))
      assert.deepEqual([headers.get('access-control-allow-origin'), headers.get('vary')], [origin, 'Origin'])
      const { status, headers: allowed, body } = await ask(app.url + path, preflight(origin))
      assert.deepEqual([status, body], [204, ''])
      assert.equal(allowed.get('access-control-allow-origin'), origin)
      assert.equal(allowed.get('access-control-allow-methods'), 'GET, HEAD, POST, PUT, PATCH, DELETE')
      assert.equal(allowed.get('access-control-allow-headers'), 'authorization')
      assert.ok(allowed.has('access-control-max-age') && allowed.has('x-request-id'))
    }
  }
  const others = [evil, `${app1}.evil.example`, 'http://app.example', `${app1}:8443`, 'null'].map(origin =>
    from(origin),
  )
  for (const asked of [...others, preflight(evil), {}]) {
    for (const path of ['/thing', '/nothing']) {
      const response = await ask(app.url + path, asked)
      assert.deepEqual(allowHeaders(response), [])
      assert.equal(response.headers.get('vary'), 'Origin')
    }
  }
})

test('a preflight allows the headers that it asks for, and otherwise those that the service reads', async () => {
  await using app = await startServer('*')
  const allowed = async (asked?: string) => {
    const headers = { origin: app1, 'access-control-request-method': 'POST' }
    const all = asked === undefined ? headers : { ...headers, 'access-control-request-headers': asked }
    const { status, headers: answered } = await ask(`${app.url}/thing`, { method: 'OPTIONS', headers: all })
    assert.equal(status, 204)
    return answered.get('access-control-allow-headers')
  }
  const own = 'authorization, content-type, idempotency-key, if-match, if-none-match, x-request-id, traceparent'
  assert.equal(await allowed(), own)
  assert.equal(
    await allowed('content-type,apollo-require-preflight, X-Apollo-Operation-Name'),
    'content-type, apollo-require-preflight, x-apollo-operation-name',
  )
  const many = (count: number) => Array.from({ length: count }, (_, n) => `x-${n}`)
  assert.equal(await allowed(many(50).join(',')), many(50).join(', '))
  const long = 'x'.repeat(2000)
  assert.equal(await allowed(long), long)
  for (const asked of [many(51).join(','), `${long}x`, 'a b', 'a,,b', '', 'x(', 'é']) {
    assert.equal(await allowed(asked), own, asked.slice(0, 20))
  }
})
