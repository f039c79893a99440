import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../../src/core/errors.ts'
import { startTestApp, startTestServer } from '../support/app.ts'
import { ask, RawConnection, sendRaw } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'

/** A server with a path that can be read, one that can be changed, and one with an id. */
async function startRoutes() {
  const called: string[] = []
  const server = await startTestServer(fastify => {
    fastify.get('/thing', ({ method }) => {
      called.push(method)
      return { ok: true }
    })
    for (const method of ['POST', 'DELETE'] as const) {
      fastify.route({ url: '/change', method, handler: () => called.push(method) })
    }
    fastify.get<{ Params: { id: string } }>('/things/:id', ({ params }) => {
      called.push(params.id)
      if (params.id === 'absent') throw new AppError('not-found', 'Thing not found')
      return { ok: true }
    })
  })
  return Object.assign(server, { called })
}

test('R-ERR-10: an absent path or resource is answered 404', async () => {
  await using server = await startRoutes()
  for (const path of ['/', '/nothing', '/thing/', '/THING', '//thing', '/thing/more', '/thing%00']) {
    assertRefusal(await ask(server.url + path), 404, 'Not found')
  }
  assertRefusal(await ask(`${server.url}/things/absent`), 404, 'Thing not found')
  assert.deepEqual(server.called, ['absent'])
})

test('an unknown path and a wrong method are refused before any body is sent', async () => {
  await using server = await startRoutes()
  const rest = 'Host: x\r\nContent-Type: application/json\r\nContent-Length: 300\r\n\r\n'
  assertRefusal(await sendRaw(server.port, `POST /nothing HTTP/1.1\r\n${rest}`), 404)
  assertRefusal(await sendRaw(server.port, `POST /thing HTTP/1.1\r\n${rest}`), 405)
  assertRefusal(await sendRaw(server.port, `PROPFIND /change HTTP/1.1\r\n${rest}`), 405)
  assert.deepEqual(server.called, [])
})

test('after such a refusal the rest of the body is discarded, and the connection serves the next request', async () => {
  await using server = await startRoutes()
  using connection = await RawConnection.open(server.port)
  connection.write('POST /thing HTTP/1.1\r\nHost: x\r\nContent-Length: 44\r\n\r\n')
  assertRefusal(await connection.response(), 405)
  connection.write('GET /things/smuggled HTTP/1.1\r\nHost: x\r\n\r\n..')
  connection.write('GET /thing HTTP/1.1\r\nHost: x\r\n\r\n')
  assert.equal((await connection.response()).status, 200)
  assert.deepEqual(server.called, ['GET'])
})

test('OPTIONS on a known path is answered 204 with Allow, on an unknown one 404', async () => {
  await using server = await startRoutes()
  const { headers, ...response } = await ask(`${server.url}/change`, { method: 'OPTIONS' })
  assert.deepEqual({ status: response.status, body: response.body }, { status: 204, body: '' })
  assert.equal(headers.get('allow'), 'POST, DELETE, OPTIONS')
  assertRefusal(await ask(`${server.url}/nothing`, { method: 'OPTIONS' }), 404)
})

test('a URL that cannot be decoded is refused with 400, in the usual error shape', async () => {
  await using server = await startRoutes()
  for (const path of ['/%zz', '/things/%zz', '/things/%80', '/things/%e2%82']) {
    const { port } = server
    const response = await sendRaw(port, `GET ${path}?a=1 HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\n\r\n`)
    assertRefusal(response, 400, 'Malformed URL')
    assert.equal(response.headers.get('access-control-allow-origin'), '*')
  }
  assert.deepEqual(server.called, [])
  assert.equal(server.logs.filter(line => line.msg === 'answered' && line.status === 400).length, 4)
})

test('headers that override the method, path or host are ignored and never reflected', async () => {
  await using app = await startTestApp({ ACCESS_POLICY: 'enforced' })
  const response = await sendRaw(
    app.port,
    [
      'GET /health/live HTTP/1.1',
      'Host: evil.example',
      'X-HTTP-Method-Override: DELETE',
      'X-Method-Override: DELETE',
      'X-Original-URL: /metrics',
      'X-Rewrite-URL: /metrics',
      'X-Forwarded-Host: evil.example',
      'X-Forwarded-Prefix: /evil.example',
      'Forwarded: host=evil.example',
      '\r\n',
    ].join('\r\n'),
  )
  assert.equal(response.status, 200)
  assert.deepEqual(JSON.parse(response.body), { status: 'live' })
  assert.doesNotMatch(JSON.stringify([...response.headers]), /evil/)
  const refused = await sendRaw(app.port, 'GET /nothing HTTP/1.1\r\nHost: evil.example\r\n\r\n')
  assertRefusal(refused, 404, 'Not found')
  assert.doesNotMatch(JSON.stringify([...refused.headers]), /evil/)
})

test('a request with an absolute URL is served by its path, for any host', async () => {
  await using server = await startRoutes()
  const response = await sendRaw(server.port, 'GET http://evil.example/thing HTTP/1.1\r\nHost: x\r\n\r\n')
  assert.equal(response.status, 200)
  assert.doesNotMatch(JSON.stringify([...response.headers]), /evil/)
})

test('a method that only the parser knows is refused with a request id, and rate limit and maintenance apply', async () => {
  await using app = await startTestApp({ RATE_LIMIT_PATHS: '/', RATE_LIMIT_MAX: '1' })
  const send = () => sendRaw(app.port, 'DESCRIBE /users/1 RTSP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  const first = await send()
  assertRefusal(first, 400, 'Unknown method')
  assertRefusal(await send(), 429, 'Too many requests. Try again later.')
  assert.deepEqual(
    app.logs.filter(({ level }) => Number(level) > 30),
    [],
  )
})
