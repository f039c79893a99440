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
    throw fault(new Error(secret))
  },
  '/status-of-a-library': () => {
    throw Object.assign(new Error(secret), { statusCode: 404, status: 404, headers: { 'x-internal': secret } })
  },
  '/connection-of-a-library': () => {
    throw Object.assign(new Error(secret), { code: 'ECONNRESET' })
  },
  '/cannot-be-serialised': () => ({ [secret]: 1n }),
  '/has-set-headers': (_request, reply) => {
    reply.code(201).type('text/html').header('location', secret).header('x-internal', secret)
    throw new Error(secret)
  },
  '/sets-an-impossible-header': (_request, reply) => {
    reply.header('location', `${secret}\n`)
    return { ok: true }
  },
} satisfies Record<string, RouteHandlerMethod>

for (const [path, handler] of Object.entries(faults)) {
  test(`R-ERR-11: an internal error is answered 500 without any of its details (${path})`, async () => {
    await using server = await startTestServer(fastify => fastify.get(path, handler))
    const response = await ask(server.url + path)
    assertRefusal(response, 500, 'Internal server error')
    assert.doesNotMatch(JSON.stringify([...response.headers]), new RegExp(`${secret}|location|x-internal|stack`))
    const logged = server.logs.find(line => line.level === 50)
    assert.ok(logged !== undefined, 'the log does not contain the error')
    assert.equal(logged.requestId, response.headers.get('x-request-id'))
  })
}

test('the log contains an internal error with its cause', async () => {
  await using server = await startTestServer(fastify =>
    fastify.get('/', () => {
      throw fault(new Error('outer', { cause: new TypeError('inner') }))
    }),
  )
  await ask(server.url)
  const logged = JSON.stringify(server.logs.find(line => line.level === 50))
  assert.match(logged, /"type":"Error","message":"outer","stack":".+errors\.test\.ts/)
  assert.match(logged, /"cause":\{"type":"TypeError","message":"inner"/)
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

for (const [code, status] of Object.entries(statuses)) {
  test(`an error with the code ${code} is answered ${status} with its message and without its cause`, async () => {
    await using server = await startTestServer(fastify =>
      fastify.get('/', () => {
        throw new AppError(code as ErrorCode, 'A sentence.', { cause: new Error(secret) })
      }),
    )
    const response = await ask(server.url)
    assertRefusal(response, status, 'A sentence.')
    assert.doesNotMatch(JSON.stringify([...response.headers]), new RegExp(secret))
    assert.equal(response.headers.has('retry-after'), status === 503)
    assert.ok(!server.logs.some(line => line.level === 50))
  })
}

test('an unavailable store is answered 503 with Retry-After, and the log contains the cause', async () => {
  await using server = await startTestServer(fastify =>
    fastify.get('/', () => {
      throw unavailable(new Error('disk full'))
    }),
  )
  const response = await ask(server.url)
  assertRefusal(response, 503, 'Service temporarily unavailable. Try again later.')
  assert.equal(response.headers.get('retry-after'), '1')
  const logged = server.logs.find(line => line.level === 40)
  assert.match(JSON.stringify(logged?.err), /disk full/)
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
  for (const [path, status] of [
    ['/throws', 500],
    ['/absent', 404],
  ] as const) {
    const { headers, body, ...response } = await ask(server.url + path, { method: 'HEAD' })
    assert.equal(response.status, status)
    assert.match(headers.get('content-type') ?? '', /^application\/json/)
    assert.equal(body, '')
  }
})
