import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import { startTestApp, startTestServer } from '../support/app.ts'
import { assertRefused } from '../support/graphql.ts'
import { type Asked, ask, type RawResponse, sendRaw } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { shared } from '../support/shared.ts'
import { RawSocket, upgradeLines } from '../support/sockets.ts'

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

/** What a page of an allowed origin asks before a request that is not simple. */
const preflight = { 'access-control-request-method': 'DELETE', 'access-control-request-headers': 'authorization' }

test('by default any origin may read answers, errors included, and their important headers', async () => {
  await using app = await startServer('*')
  for (const path of ['/thing', '/nothing', '/%zz', '/broken']) {
    const { headers } = await ask(app.url + path, { headers: { origin: evil } })
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
      const { headers } = await ask(app.url + path, { headers: { origin } })
      assert.deepEqual([headers.get('access-control-allow-origin'), headers.get('vary')], [origin, 'Origin'])
      const asked = { method: 'OPTIONS', headers: { origin, ...preflight } }
      const { status, headers: allowed, body } = await ask(app.url + path, asked)
      assert.deepEqual([status, body], [204, ''])
      assert.equal(allowed.get('access-control-allow-origin'), origin)
      assert.equal(allowed.get('access-control-allow-methods'), 'GET, HEAD, POST, PUT, PATCH, DELETE')
      assert.equal(allowed.get('access-control-allow-headers'), 'authorization')
      assert.ok(allowed.has('access-control-max-age') && allowed.has('x-request-id'))
    }
  }
  const others = [evil, `${app1}.evil.example`, 'http://app.example', `${app1}:8443`, 'null'].map(origin => ({
    origin,
  }))
  for (const headers of [...others, { origin: evil, ...preflight }, {}]) {
    for (const path of ['/thing', '/nothing']) {
      const method = 'access-control-request-method' in headers ? 'OPTIONS' : 'GET'
      const answer = await ask(app.url + path, { method, headers })
      assert.doesNotMatch([...answer.headers.keys()].join(), /access-control-allow/)
      assert.equal(answer.headers.get('vary'), 'Origin')
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
  const ofApollo = await allowed('content-type,apollo-require-preflight, X-Apollo-Operation-Name')
  assert.equal(ofApollo, 'content-type, apollo-require-preflight, x-apollo-operation-name')
  const many = (count: number) => Array.from({ length: count }, (_, n) => `x-${n}`)
  assert.equal(await allowed(many(50).join(',')), many(50).join(', '))
  const long = 'x'.repeat(2000)
  assert.equal(await allowed(long), long)
  for (const asked of [many(51).join(','), `${long}x`, 'a b', 'a,,b', '', 'x(', 'é']) {
    assert.equal(await allowed(asked), own, asked.slice(0, 20))
  }
})

type App = Awaited<ReturnType<typeof startTestApp>>

const unlimited = { RATE_LIMIT_MAX: '0' }
const foreign = 'Origin is not allowed'

const loopback = [
  ...['localhost', 'LocalHost:5173', 'localhost.', 'localhost.:80', 'app.localhost', 'a.b.localhost:3000'],
  ...['127.0.0.1', '127.0.0.1:3000', '127.255.3.4', '[::1]', '[::1]:8080'],
]

/** What browsers never send for this machine, and what only looks like it. */
const unknown = [
  ...['evil.example', 'evil.example:4000', 'localhost.evil.example', '127.0.0.1.evil.example', 'evillocalhost'],
  ...['localhost..', '.localhost', 'localhost:x', 'localhost:1:2', 'localhost/', 'localhost#', 'localhost@x'],
  ...['evil.example@localhost', '127.1', '127.0.0.256', '127.0.0.1.', '2130706433', '0x7f000001', '0177.0.0.1'],
  ...['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '::1', '[::2]', '[::]', '0.0.0.0', '10.0.0.1', '192.168.1.2:4000'],
]

function askAs(app: App, host: string, line = 'GET /users'): Promise<RawResponse> {
  return sendRaw(app.port, `${line} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
}

async function upgradeWith(app: App, headers: Readonly<Record<string, string>>): Promise<RawResponse> {
  using socket = await RawSocket.open(app.port, upgradeLines(headers))
  return socket.handshake
}

describe('Under the open policy', () => {
  const app = shared(() => startTestApp(unlimited))

  const post = (headers: Asked['headers'], path = '/users') =>
    ask(app.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{"name":"Eve","email":"eve@example.com","query":"{ __typename }"}',
    })

  it('requests and sockets are served for every name of this machine, and for any other host get 421', async () => {
    for (const host of loopback) {
      assert.equal((await askAs(app, host)).status, 200, host)
      assert.equal((await upgradeWith(app, { Host: host })).status, 101, host)
    }
    for (const host of unknown) {
      assertRefusal(await askAs(app, host), 421, 'Unknown host')
      assertRefusal(await upgradeWith(app, { Host: host }), 421, 'Unknown host')
    }
  })

  it('an unknown host is refused on every path and by every method, only health is served to it', async () => {
    const targets = ['GET /', 'GET /graphql?query={__typename}', 'POST /graphql', 'POST /tokens', 'GET /metrics']
    const others = ['GET /console', 'GET /client.js', 'DELETE /users/1', 'OPTIONS /users', 'GET /nothing', 'GET /%zz']
    for (const line of [...targets, ...others])
      assertRefusal(await askAs(app, 'evil.example', line), 421, 'Unknown host')
    const preflight = 'Origin: http://localhost\r\nAccess-Control-Request-Method: POST'
    assertRefusal(await askAs(app, `evil.example\r\n${preflight}`, 'OPTIONS /users'), 421)
    for (const path of ['/health/live', '/health/ready']) {
      assert.equal((await askAs(app, '10.0.0.1:4000', `GET ${path}`)).status, 200)
    }
  })

  it('the host of a full URL must be known, too', async () => {
    for (const target of ['http://localhost/users', 'HTTP://127.0.0.1:4000/users']) {
      assert.equal((await askAs(app, 'localhost', `GET ${target}`)).status, 200, target)
      assertRefusal(await askAs(app, 'evil.example', `GET ${target}`), 421)
    }
    for (const target of ['http://evil.example/users', 'HTTPS://evil.example/users', 'http://localhost@x/users'])
      assertRefusal(await askAs(app, 'localhost', `GET ${target}`), 421, 'Unknown host')
    assertRefusal(await sendRaw(app.port, 'GET http://evil.example/users HTTP/1.0\r\n\r\n'), 421)
    assert.equal((await sendRaw(app.port, 'GET /users HTTP/1.0\r\n\r\n')).status, 200) // no browser sends that
  })

  it('pages of this machine may read answers and write by default, whatever their port, across sites too', async () => {
    for (const host of loopback) {
      for (const origin of [`http://${host.toLowerCase()}`, `https://${host.toLowerCase()}`]) {
        const { headers, status } = await post({ origin, 'sec-fetch-site': 'cross-site' })
        assert.equal(status, 201, origin)
        assert.equal(headers.get('access-control-allow-origin'), origin)
        assert.equal((await upgradeWith(app, { Origin: origin, 'Sec-Fetch-Site': 'cross-site' })).status, 101)
      }
    }
  })

  it('pages of other origins neither read nor write nor open a socket', async () => {
    const { body: before } = await ask(`${app.url}/users`)
    const origins = [...unknown.map(host => `http://${host}`), 'null', '', 'file://', 'ftp://localhost', 'localhost']
    for (const origin of [...origins, 'http://localhost, http://evil.example', 'http://localhost/']) {
      assertRefusal(await post({ origin }), 403, foreign)
      assertRefused(await post({ origin }, '/graphql'), 403, 'FORBIDDEN', foreign)
      assertRefusal(await upgradeWith(app, { Origin: origin }), 403, foreign)
      const { status, headers } = await ask(`${app.url}/users`, { headers: { origin } })
      assert.deepEqual([status, headers.get('access-control-allow-origin')], [200, undefined], origin)
    }
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      const refused = await ask(`${app.url}/users/1`, { method, headers: { origin: 'http://evil.example' } })
      assertRefusal(refused, 403, foreign)
    }
    assert.equal((await ask(`${app.url}/users`)).body, before)
  })

  it('a change from another site is refused without Origin, too, and a link from there, the same site, and clients that are no browsers work', async () => {
    const elsewhere = { 'sec-fetch-site': 'cross-site' }
    assertRefusal(await post(elsewhere), 403, foreign)
    assertRefusal(await upgradeWith(app, { 'Sec-Fetch-Site': 'cross-site' }), 403, foreign)
    for (const method of ['GET', 'HEAD']) assert.equal((await ask(app.url, { method, headers: elsewhere })).status, 200)
    for (const site of ['same-origin', 'same-site', 'none']) {
      assert.equal((await post({ 'sec-fetch-site': site })).status, 201, site)
    }
    assert.equal((await post({})).status, 201)
  })

  it('CORS_ORIGINS replaces the default, and loopback can be one of its origins', async () => {
    const named = 'https://app.example'
    const local = 'http://localhost:5173'
    for (const [CORS_ORIGINS, origins] of [
      [named, { [named]: true, [local]: false }],
      [`loopback,${named}`, { [named]: true, [local]: true }],
      ['*', { [named]: true, null: true }],
    ] as const) {
      await using app = await startTestApp({ ...unlimited, CORS_ORIGINS })
      for (const [origin, mayWrite] of Object.entries(origins)) {
        const headers = { origin, 'sec-fetch-site': 'cross-site' }
        const { status } = await ask(`${app.url}/users/1`, { method: 'DELETE', headers })
        const upgrade = await upgradeWith(app, { Origin: origin, 'Sec-Fetch-Site': 'cross-site' })
        assert.deepEqual([status, upgrade.status], mayWrite ? [204, 101] : [403, 403], `${CORS_ORIGINS}: ${origin}`)
      }
      const own = { method: 'DELETE', headers: { origin: app.url, 'sec-fetch-site': 'same-origin' } }
      assert.equal((await ask(`${app.url}/users/1`, own)).status, 204, 'a page of the service itself')
    }
  })

  it('ALLOWED_HOSTS adds names, with all of their ports or with one', async () => {
    await using app = await startTestApp({ ...unlimited, ALLOWED_HOSTS: 'duet.example, box:8080,[fd00::1]' })
    const added = ['duet.example', 'Duet.Example.:80', 'duet.example:4000', 'box:8080', '[fd00::1]:4000', 'localhost']
    for (const host of added) assert.equal((await askAs(app, host)).status, 200, host)
    const odd = ['box', 'box:8081', 'a.duet.example', 'duet.example:x', 'duet.example..', 'x@duet.example', '[fd::2]']
    for (const host of odd) assertRefusal(await askAs(app, host), 421)
    const changed = { method: 'DELETE', headers: { origin: 'http://duet.example' } }
    assertRefusal(await ask(`${app.url}/users/1`, changed), 403)
    const own = { host: 'duet.example', origin: 'http://duet.example' }
    assert.equal((await ask(`${app.url}/users/1`, { method: 'DELETE', headers: own })).status, 204)
  })
})

test('under the enforced policy any host and any origin is served: tokens decide', async () => {
  await using app = await startTestApp({ ...unlimited, ACCESS_POLICY: 'enforced' })
  assert.equal((await askAs(app, 'evil.example', 'GET /')).status, 200)
  const headers = { origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }
  assertRefusal(await ask(`${app.url}/users/1`, { method: 'DELETE', headers }), 401)
  const { status, headers: answered } = await ask(app.url, { headers })
  assert.deepEqual([status, answered.get('access-control-allow-origin')], [200, '*'])
  assert.equal((await upgradeWith(app, { Host: 'evil.example', Origin: 'http://evil.example' })).status, 101)
})
