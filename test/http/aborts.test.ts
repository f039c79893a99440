import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestServer } from '../support/app.ts'
import { ask, RawConnection } from '../support/http.ts'
import { waitUntil } from '../support/wait.ts'

const json = 'Host: x\r\nContent-Type: application/json\r\n'

/** The data that a client had sent before it disconnected. */
const begun = {
  'in the middle of a body': `POST /echo HTTP/1.1\r\n${json}Content-Length: 100\r\n\r\n{"a"`,
  'before any of its body': `POST /echo HTTP/1.1\r\n${json}Content-Length: 100\r\n\r\n`,
  'in the middle of a chunk': `POST /echo HTTP/1.1\r\n${json}Transfer-Encoding: chunked\r\n\r\n64\r\n{"a"`,
  'while it was answered': 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n',
}

const ways = {
  resets: (connection: RawConnection) => connection.reset(),
  closes: (connection: RawConnection) => connection[Symbol.dispose](),
  'half-closes': (connection: RawConnection) => connection.finish(),
}

test('a client that leaves in any way, in the middle of its request or of the answer, causes no internal error', async () => {
  let gone = Promise.withResolvers<void>()
  await using server = await startTestServer(fastify => {
    fastify.post('/echo', () => assert.fail('an incomplete body reached the handler'))
    fastify.get('/slow', () => gone.promise.then(() => ({ late: true })))
    fastify.get('/', () => ({ ok: true }))
  })
  for (const [when, bytes] of Object.entries(begun)) {
    for (const [how, leave] of Object.entries(ways)) {
      const left = `${how} its connection ${when}`
      gone = Promise.withResolvers<void>()
      server.logs.length = 0
      using connection = await RawConnection.open(server.port)
      connection.write(bytes)
      await waitUntil(() => server.lifecycle.requestsInFlight === 1)
      leave(connection)
      await waitUntil(() => server.lifecycle.requestsInFlight === 0)
      gone.resolve()
      assert.equal((await ask(server.url)).status, 200, left)
      assert.ok(
        server.logs.some(line => line.msg === 'the client disconnected before the answer was sent'),
        left,
      )
      const unusual = server.logs.filter(line => Number(line.level) > 30 || line.status === 500)
      assert.deepEqual(unusual, [], left)
    }
  }
})

test('a client that disconnects before its headers are complete does not count as a request', async () => {
  await using server = await startTestServer(fastify => fastify.get('/', () => ({ ok: true })))
  for (const leave of Object.values(ways)) {
    using connection = await RawConnection.open(server.port)
    connection.write('GET / HTTP/1.1\r\nHos')
    await waitUntil(() => [...server.lifecycle.connections].some(({ bytesRead }) => bytesRead > 0))
    leave(connection)
    await waitUntil(() => server.lifecycle.connections.size === 0)
  }
  assert.equal((await ask(server.url)).status, 200)
  assert.ok(!server.logs.some(line => Number(line.level) > 30))
})
