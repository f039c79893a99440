import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestServer } from '../support/app.ts'
import { ask, sendRaw } from '../support/http.ts'

const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

async function startRoutes() {
  return await startTestServer(
    fastify => {
      fastify.get('/', () => ({ ok: true }))
      fastify.post('/echo', ({ body }) => ({ body }))
      fastify.get('/throws', () => {
        throw new Error('defect')
      })
    },
    { bodyLimitBytes: 1024 },
  )
}

const sane = ['a', 'req_1.2:3-4', '0af7651916cd43dd8448eb211c80319c', 'x'.repeat(128)]

test('a plain request id is used in the answer and in the log', async () => {
  await using server = await startRoutes()
  for (const id of sane) {
    const { headers } = await ask(server.url, { headers: { 'x-request-id': id } })
    assert.equal(headers.get('x-request-id'), id)
    assert.equal(server.logs.findLast(line => line.msg === 'answered')?.requestId, id)
  }
})

const insane = [
  '',
  'two words',
  'x'.repeat(129),
  'a,b',
  '<script>',
  '"quoted"',
  '{"level":50}',
  'a\tb',
  '../../etc/passwd',
  Buffer.from('größe').toString('latin1'),
]

test('any other request id is replaced by a new one, and not logged', async () => {
  await using server = await startRoutes()
  for (const id of insane) {
    const bytes = `GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n\r\n`
    const { headers, status } = await sendRaw(server.port, Buffer.from(bytes, 'latin1'))
    assert.equal(status, 200)
    assert.match(headers.get('x-request-id') ?? '', uuid)
    assert.equal(server.logs.at(-1)?.requestId, headers.get('x-request-id'))
    if (id !== '') assert.ok(!JSON.stringify(server.logs).includes(JSON.stringify(id).slice(1, -1)))
  }
})

test('a request id that is sent twice, or contains a line break, is replaced', async () => {
  await using server = await startRoutes()
  const twice = await sendRaw(server.port, 'GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\r\nX-Request-Id: b\r\n\r\n')
  assert.match(twice.headers.get('x-request-id') ?? '', uuid)
  const split = await sendRaw(server.port, 'GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\r\nSet-Cookie: b=c\r\n\r\n')
  assert.ok(!split.headers.has('set-cookie'))
  const bare = await sendRaw(server.port, 'GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\nSet-Cookie: b=c\r\n\r\n')
  assert.equal(bare.status, 400)
  assert.match(bare.headers.get('x-request-id') ?? '', uuid)
})

test('error responses also contain the sent id', async () => {
  await using server = await startRoutes()
  const head = 'Host: x\r\nX-Request-Id: mine\r\n'
  for (const [status, bytes] of [
    [404, `GET /absent HTTP/1.1\r\n${head}\r\n`],
    [405, `PUT / HTTP/1.1\r\n${head}\r\n`],
    [413, `POST /echo HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: 9999\r\n\r\n`],
    [415, `POST /echo HTTP/1.1\r\n${head}Content-Length: 2\r\n\r\n{}`],
    [417, `GET / HTTP/1.1\r\n${head}Expect: x\r\n\r\n`],
    [400, `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\nrubbish\r\n`],
    [501, `CONNECT a:1 HTTP/1.1\r\n${head}\r\n`],
  ] as const) {
    const response = await sendRaw(server.port, bytes)
    assert.deepEqual([response.status, response.headers.get('x-request-id')], [status, 'mine'])
  }
})

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

test('a well-formed traceparent is in every log line of its request', async () => {
  await using server = await startRoutes()
  await ask(`${server.url}/throws`, { headers: { traceparent } })
  const lines = server.logs.filter(line => line.requestId !== undefined)
  assert.equal(lines.length, 2)
  for (const line of lines) assert.equal(line.traceparent, traceparent)
})

test('a malformed traceparent is not logged', async () => {
  await using server = await startRoutes()
  for (const malformed of [
    traceparent.toUpperCase(),
    traceparent.slice(0, -1),
    `${traceparent}-more`,
    traceparent.replace('00-', '01-'),
    traceparent.replace('b7ad6b7169203331', 'b7ad6b71692033319'),
    '00-aa-bb-cc',
    `${traceparent}, ${traceparent}`,
  ]) {
    await ask(server.url, { headers: { traceparent: malformed } })
    assert.ok(!JSON.stringify(server.logs).includes('traceparent'))
    assert.ok(!JSON.stringify(server.logs).includes(malformed))
  }
})
