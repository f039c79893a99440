import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RouteHandlerMethod } from 'fastify'
import { AppError, type ErrorCode, fault, unavailable } from '../../src/core/errors.ts'
import { startTestServer } from '../support/app.ts'
import { ask, postJson, sendRaw } from '../support/http.ts'
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

test('R-ERR-1, R-ERR-2: every kind of failure has a real status, a body with the one string `error`, and an id of its own that is logged', async () => {
  await using server = await startTestServer(
    fastify => {
      for (const [path, handler] of Object.entries(faults)) fastify.get(path, handler)
      fastify.post('/echo', ({ body }) => ({ body }))
      fastify.get('/unavailable', () => {
        throw unavailable(new Error(secret))
      })
    },
    { bodyLimitBytes: 1024 },
  )
  const { url, port } = server
  const answers = [
    [400, await postJson(`${url}/echo`, '{')],
    [400, await ask(`${url}/%zz`)],
    [400, await sendRaw(port, 'GET / HTTP/1.1\r\n\r\n')],
    [400, await sendRaw(port, 'rubbish\r\n\r\n')],
    [404, await ask(`${url}/absent`)],
    [405, await ask(`${url}/echo`)],
    [413, await postJson(`${url}/echo`, JSON.stringify('x'.repeat(1024)))],
    [415, await postJson(`${url}/echo`, '{}', 'text/plain')],
    [417, await sendRaw(port, 'GET /throws HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n')],
    [431, await sendRaw(port, `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`)],
    [500, await ask(`${url}/throws`)],
    [501, await sendRaw(port, 'CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n')],
    [503, await ask(`${url}/unavailable`)],
    [505, await sendRaw(port, 'GET / HTTP/2.0\r\nHost: x\r\n\r\n')],
  ] as const
  for (const [status, answer] of answers) assertRefusal(answer, status)
  const ids = new Set(answers.map(([, { headers }]) => headers.get('x-request-id')))
  assert.equal(ids.size, answers.length)
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
