import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestServer } from '../support/app.ts'
import { RawConnection } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'

/** A server with short timeouts that are checked often. */
async function startHasty() {
  const executed: unknown[] = []
  const server = await startTestServer(fastify => {
    Object.assign(fastify.server, { headersTimeout: 500, requestTimeout: 800, connectionsCheckingInterval: 10 })
    fastify.post('/echo', ({ body }) => executed.push(body))
    fastify.get('/', () => ({ ok: true }))
  })
  return Object.assign(server, { executed })
}

const unfinished = {
  'no byte at all': '',
  'half a request line': 'GET / HT',
  'half a head': 'GET / HTTP/1.1\r\nHost: x\r\n',
  'half a body':
    'POST /echo HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine-1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"a"',
  'half a chunk':
    'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{',
}

test('a request that is sent in part, or not at all, is answered with 408 and its id, the connection is closed, and no internal error; an idle connection is not late', async () => {
  await using server = await startHasty()
  using idle = await RawConnection.open(server.port)
  const isServed = async () => {
    idle.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    assert.equal((await idle.response()).status, 200)
  }
  await isServed()
  const late = async ([what, bytes]: [string, string]) => {
    using connection = await RawConnection.open(server.port)
    connection.write(bytes)
    const response = await connection.response()
    assertRefusal(response, 408, 'Request was not received in time')
    if (bytes.includes('mine-1')) assert.equal(response.headers.get('x-request-id'), 'mine-1')
    assert.equal(await connection.closed(), '', what)
  }
  await Promise.all(Object.entries(unfinished).map(late))
  await isServed()
  assert.deepEqual(server.executed, [])
  assert.ok(!server.logs.some(line => Number(line.level) > 30 || line.status === 500))
})

test('the timeouts of the app: 10 s for the headers, 30 s for a request, 72 s between two requests', async () => {
  await using running = await startTestServer(() => {})
  const { headersTimeout, requestTimeout, keepAliveTimeout } = running.server.server
  assert.deepEqual([headersTimeout, requestTimeout, keepAliveTimeout], [10_000, 30_000, 72_000])
})
