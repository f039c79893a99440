import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RouteHandlerMethod } from 'fastify'
import { AppError, type ErrorCode, fault, unavailable } from '../../src/core/errors.ts'
import { startTestServer } from '../support/app.ts'
import { ask, sendRaw } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'

const secret = 'hunter2'

/** Routes that fail in every way that a handler can. */
const faults = {
  '/throws': () => {
    throw new Error(secret)
  },
  '/rejects': async () => Promise.reject(new Error(secret)),
  '/throws-text': () => {
    throw secret
  },
  '/rejects-null': () => Promise.reject(null),
  '/fault': () => {
    throw fault(new Error(secret, { cause: new TypeError('inner') }))
  },
  '/status-of-a-library': () => {
    throw Object.assign(new Error(secret), { statusCode: 404, status: 404, headers: { 'x-internal': secret } })
  },
  '/connection-of-a-library': () => {
    throw Object.assign(new Error(secret), { code: 'ECONNRESET' })
  },
  '/cannot-be-serialised': () => ({ [secret]: 1n }),
  '/has-set-headers': (_request, reply) => {
    reply
      .code(201)
      .type('text/html')
      .header('location', secret)
      .header('x-internal', secret)
      .header('cache-control', 'public, max-age=300')
    throw new Error(secret)
  },
  '/sets-an-impossible-header': (_request, reply) => {
    reply.header('location', `${secret}\n`)
    return { ok: true }
  },
} satisfies Record<string, RouteHandlerMethod>

test('R-ERR-11: an internal error is answered 500 without any of its details, which are in the log', async () => {
  await using server = await startTestServer(fastify => {
    for (const [path, handler] of Object.entries(faults)) fastify.get(path, handler)
  })
  for (const path of Object.keys(faults)) {
    const response = await ask(server.url + path)
    assertRefusal(response, 500, 'Internal server error')
    const headers = JSON.stringify([...response.headers])
    assert.doesNotMatch(headers, new RegExp(`${secret}|location|x-internal|stack|max-age`), path)
    assert.equal(response.headers.get('cache-control'), 'no-store', path)
    const logged = server.logs.filter(line => line.level === 50)
    assert.equal(logged.length, 1, path)
    assert.equal(logged[0]?.requestId, response.headers.get('x-request-id'), path)
    if (path === '/fault') {
      const cause = /"message":"hunter2","stack":".+errors\.test\.ts.+"cause":\{"type":"TypeError","message":"inner"/
      assert.match(JSON.stringify(logged), cause)
    }
    server.logs.length = 0
  }
})

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

test('an expected error is answered with the status of its code, its message and without its cause', async () => {
  await using server = await startTestServer(fastify => {
    fastify.get('/:code', ({ params }) => {
      const { code } = params as { code: ErrorCode }
      throw new AppError(code, 'A sentence.', { cause: new Error(secret) })
    })
  })
  for (const [code, status] of Object.entries(statuses)) {
    const response = await ask(`${server.url}/${code}`)
    assertRefusal(response, status, 'A sentence.')
    assert.doesNotMatch(JSON.stringify([...response.headers]), new RegExp(secret))
    const retryAfter = new Map([
      ['unavailable', '1'],
      ['maintenance', '60'],
    ]).get(code)
    assert.equal(response.headers.get('retry-after'), retryAfter, code)
    const logged = server.logs.filter(({ level }) => Number(level) > 30)
    assert.equal(logged.length, code === 'unavailable' ? 1 : 0, code)
    for (const { level, err } of logged) assert.deepEqual([level, JSON.stringify(err).includes(secret)], [40, true])
    server.logs.length = 0
  }
})

const request = (line: string, head = '', body = '') => `${line} HTTP/1.1\r\nHost: x\r\n${head}\r\n${body}`
const json = 'Content-Type: application/json\r\n'

/** Requests of which the service reads the head. */
const refused: readonly (readonly [status: number, bytes: string])[] = [
  [400, request('POST /echo', `${json}Content-Length: 1\r\n`, '{')],
  [400, request('GET /%zz')],
  [400, request('POST /echo', 'Transfer-Encoding: chunked\r\n', 'rubbish\r\n')],
  [404, request('GET /absent')],
  [405, request('GET /echo')],
  [413, request('POST /echo', `${json}Content-Length: 9999\r\n`)],
  [415, request('POST /echo', 'Content-Length: 2\r\n', '{}')],
  [417, request('GET /throws', 'Expect: x\r\n')],
  [500, request('GET /throws')],
  [501, request('CONNECT a:1')],
  [503, request('GET /unavailable')],
]
const unread: typeof refused = [
  [400, 'GET / HTTP/1.1\r\n\r\n'],
  [400, 'rubbish\r\n\r\n'],
  [431, request('GET /', `A: ${'a'.repeat(20_000)}\r\n`)],
  [505, 'GET / HTTP/2.0\r\nHost: x\r\n\r\n'],
]

test('R-ERR-1, R-ERR-2: every kind of failure has a real status, a body with the one string `error`, and the id of the client or one of its own, which is logged', async () => {
  await using server = await startTestServer(
    fastify => {
      fastify.get('/throws', faults['/throws'])
      fastify.post('/echo', ({ body }) => ({ body }))
      fastify.get('/unavailable', () => {
        throw unavailable(new Error(secret))
      })
    },
    { bodyLimitBytes: 1024 },
  )
  const withId = refused.map(
    ([status, bytes], at) => [status, bytes.replace('\r\n', `\r\nX-Request-Id: mine-${at}\r\n`)] as const,
  )
  const ids: (string | undefined)[] = []
  for (const [status, bytes] of [...withId, ...refused, ...unread]) {
    const answer = await sendRaw(server.port, bytes)
    assertRefusal(answer, status)
    ids.push(answer.headers.get('x-request-id'))
  }
  assert.deepEqual(
    ids.slice(0, withId.length),
    withId.map((_, at) => `mine-${at}`),
  )
  assert.equal(new Set(ids).size, ids.length)
  const logged = new Set(server.logs.map(line => line.requestId))
  for (const id of ids) assert.ok(logged.has(id), id)
})

test('a refused HEAD request gets the headers of the error and no body', async () => {
  await using server = await startTestServer(fastify => fastify.get('/throws', faults['/throws']))
  for (const [path, expected] of Object.entries({ '/throws': 500, '/absent': 404 })) {
    const { status, headers, body } = await ask(server.url + path, { method: 'HEAD' })
    assert.deepEqual([status, body], [expected, ''])
    assert.match(headers.get('content-type') ?? '', /^application\/json/)
  }
})
