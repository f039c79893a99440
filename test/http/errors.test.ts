import assert from 'node:assert/strict'
import { beforeEach, describe, it, test } from 'node:test'
import type { RouteHandlerMethod } from 'fastify'
import { AppError, type ErrorCode, fault } from '../../src/core/errors.ts'
import { startTestApp, startTestServer } from '../support/app.ts'
import { ask, sendRaw } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { shared } from '../support/shared.ts'

const secret = 'hunter2'

/** Routes that fail in every way that a handler can. */
const faults = {
  '/throws': () => {
    throw new Error(secret)
  },
  '/rejects-text': () => Promise.reject(secret),
  '/rejects-null': () => Promise.reject(null),
  '/fault': () => Promise.reject(fault(new Error(secret, { cause: new TypeError('inner') }))),
  '/status-of-a-library': () =>
    Promise.reject(
      Object.assign(new Error(secret), { statusCode: 404, status: 404, headers: { 'x-internal': secret } }),
    ),
  '/connection-of-a-library': () => Promise.reject(Object.assign(new Error(secret), { code: 'ECONNRESET' })),
  '/cannot-be-serialised': () => ({ [secret]: 1n }),
  '/has-set-headers': (_request, reply) => {
    reply.code(201).type('text/html').header('cache-control', 'public, max-age=300')
    reply.header('location', secret).header('x-internal', secret)
    throw new Error(secret)
  },
  '/sets-an-impossible-header': (_request, reply) => {
    reply.header('location', `${secret}\n`)
    return { ok: true }
  },
} satisfies Record<string, RouteHandlerMethod>

const statuses: Readonly<Record<Exclude<ErrorCode, 'fault'>, number>> = {
  'bad-input': 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  conflict: 409,
  'condition-unmet': 412,
  'rate-limited': 429,
  'answer-too-large': 400,
  unavailable: 503,
  maintenance: 503,
}

const request = (line: string, head = '', body = '') => `${line} HTTP/1.1\r\nHost: x\r\n${head}\r\n${body}`
const json = 'Content-Type: application/json\r\n'

/** Requests of which the service reads the head. */
const refused: readonly (readonly [status: number, bytes: string])[] = [
  [400, request('POST /change', `${json}Content-Length: 1\r\n`, '{')],
  [400, request('GET /%zz')],
  [400, request('POST /change', 'Transfer-Encoding: chunked\r\n', 'rubbish\r\n')],
  [404, request('GET /absent')],
  [405, request('GET /change')],
  [413, request('POST /change', `${json}Content-Length: 9999\r\n`)],
  [415, request('POST /change', 'Content-Length: 2\r\n', '{}')],
  [417, request('GET /throws', 'Expect: x\r\n')],
  [500, request('GET /throws')],
  [501, request('CONNECT a:1')],
  [503, request('GET /codes/unavailable')],
]
const unread: typeof refused = [
  [400, 'GET / HTTP/1.1\r\n\r\n'],
  [400, 'rubbish\r\n\r\n'],
  [431, request('GET /', `A: ${'a'.repeat(20_000)}\r\n`)],
  [505, 'GET / HTTP/2.0\r\nHost: x\r\n\r\n'],
]

const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/
const plainIds = ['a', 'req_1.2:3-4', '0af7651916cd43dd8448eb211c80319c', 'x'.repeat(128)]
const unusualIds = [
  ...['', 'two words', 'x'.repeat(129), 'a,b', '<script>', '"quoted"', '{"level":50}', 'a\tb', '../../etc/passwd'],
  ...[Buffer.from('größe').toString('latin1'), 'a\r\nX-Request-Id: b'],
]
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const malformedParents = [
  ...[traceparent.toUpperCase(), traceparent.slice(0, -1), `${traceparent}-more`, `${traceparent}, ${traceparent}`],
  ...[traceparent.replace('00-', '01-'), traceparent.replace('-01', '9-01'), '00-aa-bb-cc'],
]

describe('Errors, routes and ids of requests', () => {
  const called: string[] = []
  const server = shared(() =>
    startTestServer(
      fastify => {
        for (const [path, handler] of Object.entries(faults)) fastify.get(path, handler)
        fastify.get('/codes/:code', ({ params }) => {
          const { code } = params as { code: ErrorCode }
          throw new AppError(code, 'A sentence.', { cause: new Error(secret) })
        })
        fastify.get('/thing', ({ method }) => called.push(method) && { ok: true })
        fastify.route({ url: '/change', method: ['POST', 'DELETE'], handler: ({ method }) => called.push(method) })
        fastify.get('/things/:id', ({ url }) => called.push(url))
      },
      { bodyLimitBytes: 1024 },
    ),
  )
  beforeEach(() => {
    called.length = 0
    server.logs.length = 0
  })

  it('R-ERR-11: an internal error is answered 500 without any of its details, which are in the log', async () => {
    for (const path of Object.keys(faults)) {
      const response = await ask(server.url + path)
      assertRefusal(response, 500, 'Internal server error')
      const headers = JSON.stringify([...response.headers])
      assert.doesNotMatch(headers, new RegExp(`${secret}|location|x-internal|stack|max-age`), path)
      const kept = ['cache-control', 'x-content-type-options'].map(name => response.headers.get(name))
      assert.deepEqual(kept, ['no-store', 'nosniff'], path)
      const logged = server.logs.splice(0).filter(line => line.level === 50)
      assert.equal(logged.length, 1, path)
      assert.equal(logged[0]?.requestId, response.headers.get('x-request-id'), path)
      if (path === '/fault') {
        const cause = /"message":"hunter2","stack":".+errors\.test\.ts.+"cause":\{"type":"TypeError","message":"inner"/
        assert.match(JSON.stringify(logged), cause)
      }
    }
  })

  it('an expected error is answered with the status of its code, its message and without its cause', async () => {
    for (const [code, status] of Object.entries(statuses)) {
      const response = await ask(`${server.url}/codes/${code}`)
      assertRefusal(response, status, 'A sentence.')
      assert.doesNotMatch(JSON.stringify([...response.headers]), new RegExp(secret))
      const retryAfter = { unavailable: '1', maintenance: '60' }[code]
      assert.equal(response.headers.get('retry-after'), retryAfter, code)
      const logged = server.logs.splice(0).filter(({ level }) => Number(level) > 30)
      assert.equal(logged.length, code === 'unavailable' ? 1 : 0, code)
      for (const { level, err } of logged) assert.deepEqual([level, JSON.stringify(err).includes(secret)], [40, true])
    }
  })

  it('R-ERR-1, R-ERR-2: every kind of failure has a real status, a body with the one string `error`, and the id of the client or one of its own, which is logged', async () => {
    const withId = refused.map(
      ([status, bytes], at) => [status, bytes.replace('\r\n', `\r\nX-Request-Id: mine-${at}\r\n`)] as const,
    )
    const ids: (string | undefined)[] = []
    for (const [status, bytes] of [...withId, ...refused, ...unread]) {
      const answer = await sendRaw(server.port, bytes)
      assertRefusal(answer, status)
      ids.push(answer.headers.get('x-request-id'))
    }
    for (const at of withId.keys()) assert.equal(ids[at], `mine-${at}`)
    assert.equal(new Set(ids).size, ids.length)
    const logged = new Set(server.logs.map(line => line.requestId))
    for (const id of ids) assert.ok(logged.has(id), id)
  })

  it('a refused HEAD request gets the headers of the error and no body', async () => {
    for (const [path, expected] of Object.entries({ '/throws': 500, '/absent': 404 })) {
      const { status, headers, body } = await ask(server.url + path, { method: 'HEAD' })
      assert.deepEqual([status, body], [expected, ''])
      assert.match(headers.get('content-type') ?? '', /^application\/json/)
    }
  })

  it('R-ERR-10: routes that are absent, and absent resources, are answered 404', async () => {
    for (const path of ['/', '/nothing', '/thing/', '/THING', '//thing', '/thing/more', '/thing%00']) {
      assertRefusal(await ask(server.url + path), 404, 'Not found')
    }
    assertRefusal(await ask(`${server.url}/codes/not-found`), 404, 'A sentence.')
    assert.deepEqual(called, [])
  })

  it('known routes answer OPTIONS with 204 and Allow, and unknown ones with 404', async () => {
    const { status, body, headers } = await ask(`${server.url}/change`, { method: 'OPTIONS' })
    assert.deepEqual([status, body, headers.get('allow')], [204, '', 'POST, DELETE, OPTIONS'])
    assertRefusal(await ask(`${server.url}/nothing`, { method: 'OPTIONS' }), 404)
  })

  it('a URL that cannot be decoded is refused with 400, in the usual error shape, before any route', async () => {
    for (const path of ['/%zz', '/things/%zz', '/things/%80', '/things/%e2%82']) {
      const response = await sendRaw(server.port, request(`GET ${path}?a=1`, 'Origin: https://a.example\r\n'))
      assertRefusal(response, 400, 'Malformed URL')
      assert.equal(response.headers.get('access-control-allow-origin'), '*')
      const logged = server.logs.findLast(line => line.msg === 'answered')
      assert.deepEqual([logged?.status, logged?.requestId], [400, response.headers.get('x-request-id')])
    }
    assert.deepEqual(called, [])
  })

  const send = (head: string) => sendRaw(server.port, Buffer.from(request('GET /thing', head), 'latin1'))

  it('a plain id of the client is used in the answer and in the log', async () => {
    for (const id of plainIds) {
      assert.equal((await send(`X-Request-Id: ${id}\r\n`)).headers.get('x-request-id'), id)
      assert.equal(server.logs.findLast(line => line.msg === 'answered')?.requestId, id)
    }
  })

  it('an id of the client that is unusual, or sent twice, is replaced by a new one, and not logged', async () => {
    for (const id of unusualIds) {
      const { headers, status } = await send(`X-Request-Id: ${id}\r\n`)
      assert.equal(status, 200)
      assert.match(headers.get('x-request-id') ?? '', uuid)
      assert.equal(server.logs.at(-1)?.requestId, headers.get('x-request-id'))
      if (id !== '') assert.ok(!JSON.stringify(server.logs).includes(JSON.stringify(id).slice(1, -1)))
    }
    assert.ok(!(await send('X-Request-Id: a\r\nSet-Cookie: b=c\r\n')).headers.has('set-cookie'))
  })

  it('a well-formed traceparent is in every log line of its request, and a malformed one in none', async () => {
    const { headers } = await ask(`${server.url}/throws`, { headers: { traceparent } })
    const lines = server.logs.splice(0).filter(line => line.requestId === headers.get('x-request-id'))
    assert.equal(lines.length, 2)
    for (const line of lines) assert.equal(line.traceparent, traceparent)
    for (const malformed of malformedParents) {
      await ask(server.url, { headers: { traceparent: malformed } })
      const logged = JSON.stringify(server.logs.map(({ requestId, ...line }) => line))
      assert.doesNotMatch(logged, /traceparent|-[ab]/i, malformed)
    }
  })
})

test('headers that override the method, path or host are ignored and never reflected', async () => {
  await using app = await startTestApp({ ACCESS_POLICY: 'enforced' })
  const methods = 'X-HTTP-Method-Override: DELETE\r\nX-Method-Override: DELETE\r\n'
  const paths = 'X-Original-URL: /metrics\r\nX-Rewrite-URL: /metrics\r\nX-Forwarded-Prefix: /evil.example\r\n'
  const hosts = 'Host: evil.example\r\nX-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\n'
  for (const [path, expected] of Object.entries({ '/health/live': 200, '/nothing': 404 })) {
    const sent = `GET ${path} HTTP/1.1\r\n${methods}${paths}${hosts}\r\n`
    const { status, headers, body } = await sendRaw(app.port, sent)
    assert.equal(status, expected)
    assert.equal(body, status === 200 ? '{"status":"live"}' : '{"error":"Not found"}')
    assert.doesNotMatch(JSON.stringify([...headers]), /evil/)
  }
})

test('a method that only the parser knows is refused with a request id, and rate limit and maintenance apply', async () => {
  await using app = await startTestApp({ RATE_LIMIT_PATHS: '/', RATE_LIMIT_MAX: '1' })
  const send = () => sendRaw(app.port, 'DESCRIBE /users/1 RTSP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  assertRefusal(await send(), 400, 'Unknown method')
  assertRefusal(await send(), 429, 'Too many requests. Try again later.')
  assert.ok(!app.logs.some(({ level }) => Number(level) > 30))
})
