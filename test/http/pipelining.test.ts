import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pipelineLength } from '../../src/http/connections.ts'
import { startTestServer } from '../support/app.ts'
import { ask, RawConnection } from '../support/http.ts'
import { waitUntil, within } from '../support/wait.ts'

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`

/** A server whose answers to `/slow` wait for the test. It records the requests that it started, in order. */
async function start() {
  const begun: string[] = []
  const go = Promise.withResolvers<void>()
  const server = await startTestServer(fastify => {
    fastify.addHook('onRequest', (request, _reply, next) => {
      begun.push(request.url)
      next()
    })
    fastify.get('/slow', async () => {
      await go.promise
      return { slow: true }
    })
    fastify.get('/:name', ({ params }) => params)
    fastify.post('/echo', ({ body }) => body)
  })
  return Object.assign(server, { begun, go: go.resolve })
}

test('pipelined requests are processed one after the other, and answered in order', async () => {
  await using server = await start()
  using connection = await RawConnection.open(server.port)
  const body = '{"a":1}'
  const post = `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  connection.write(get('/slow') + get('/a') + post + get('/b'))
  await waitUntil(() => server.begun.length > 0)
  assert.equal((await ask(`${server.url}/other`)).status, 200)
  assert.deepEqual(server.begun, ['/slow', '/other'])
  server.go()
  const bodies: string[] = []
  for (let count = 0; count < 4; count++) bodies.push((await within(connection.response(), 'an answer')).body)
  assert.deepEqual(bodies, ['{"slow":true}', '{"name":"a"}', body, '{"name":"b"}'])
  assert.deepEqual(server.begun, ['/slow', '/other', '/a', '/echo', '/b'])
  // Those that were answered no longer wait.
  for (let packets = 0; packets < 2; packets++) {
    connection.write(get('/a').repeat(pipelineLength + 1))
    for (let count = 0; count <= pipelineLength; count++) assert.equal((await connection.response()).status, 200)
  }
})

test('a connection with more than 100 waiting requests is closed, and none of these is processed, as of one that its client resets', async () => {
  for (const waiting of [pipelineLength + 1, 2]) {
    await using server = await start()
    using connection = await RawConnection.open(server.port)
    connection.write(get('/slow') + get('/a').repeat(waiting))
    await waitUntil(() => server.begun.length > 0)
    if (waiting === 2) connection.reset()
    else assert.equal(await within(connection.closed(), 'the end'), '')
    await waitUntil(() => server.lifecycle.connections.size === 0)
    server.go()
    assert.equal((await ask(`${server.url}/other`)).status, 200)
    assert.deepEqual(server.begun, ['/slow', '/other'])
  }
})

test('after an answer that closes the connection, further pipelined requests are not processed', async () => {
  await using server = await start()
  using connection = await RawConnection.open(server.port)
  connection.write(`GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n${get('/b')}`)
  assert.equal((await connection.response()).body, '{"name":"a"}')
  assert.equal(await connection.closed(), '')
  assert.deepEqual(server.begun, ['/a'])
})

test('a tunnel that is asked for after other requests does not take their answers away', async () => {
  await using server = await start()
  using connection = await RawConnection.open(server.port)
  connection.write(`${get('/slow')}${get('/a')}CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n`)
  await waitUntil(() => server.begun.length > 0)
  server.go()
  for (const expected of ['{"slow":true}', '{"name":"a"}']) assert.equal((await connection.response()).body, expected)
  assert.equal(await connection.closed(), '')
})
