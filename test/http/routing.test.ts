import assert from 'node:assert/strict'
import { beforeEach, describe, it, test } from 'node:test'
import { AppError } from '../../src/core/errors.ts'
import { startTestApp, startTestServer } from '../support/app.ts'
import { ask, sendRaw } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { shared } from '../support/shared.ts'

describe('Routes', () => {
  const called: string[] = []
  const server = shared(() =>
    startTestServer(fastify => {
      fastify.get('/thing', ({ method }) => called.push(method) && { ok: true })
      fastify.route({ url: '/change', method: ['POST', 'DELETE'], handler: ({ method }) => called.push(method) })
      fastify.get('/things/absent', () => {
        throw new AppError('not-found', 'Thing not found')
      })
      fastify.get('/things/:id', ({ url }) => called.push(url))
    }),
  )
  beforeEach(() => {
    called.length = 0
  })

  it('R-ERR-10: that are absent, and absent resources, are answered 404', async () => {
    for (const path of ['/', '/nothing', '/thing/', '/THING', '//thing', '/thing/more', '/thing%00']) {
      assertRefusal(await ask(server.url + path), 404, 'Not found')
    }
    assertRefusal(await ask(`${server.url}/things/absent`), 404, 'Thing not found')
    assert.deepEqual(called, [])
  })

  it('that are known answer OPTIONS with 204 and Allow, and unknown ones with 404', async () => {
    const { status, body, headers } = await ask(`${server.url}/change`, { method: 'OPTIONS' })
    assert.deepEqual([status, body, headers.get('allow')], [204, '', 'POST, DELETE, OPTIONS'])
    assertRefusal(await ask(`${server.url}/nothing`, { method: 'OPTIONS' }), 404)
  })

  it('are not called for a URL that cannot be decoded: it is refused with 400, in the usual error shape', async () => {
    for (const path of ['/%zz', '/things/%zz', '/things/%80', '/things/%e2%82']) {
      const head = 'Host: x\r\nOrigin: https://a.example\r\n\r\n'
      const response = await sendRaw(server.port, `GET ${path}?a=1 HTTP/1.1\r\n${head}`)
      assertRefusal(response, 400, 'Malformed URL')
      assert.equal(response.headers.get('access-control-allow-origin'), '*')
      const logged = server.logs.findLast(line => line.msg === 'answered')
      assert.deepEqual([logged?.status, logged?.requestId], [400, response.headers.get('x-request-id')])
    }
    assert.deepEqual(called, [])
  })
})

test('headers that override the method, path or host are ignored and never reflected', async () => {
  await using app = await startTestApp({ ACCESS_POLICY: 'enforced' })
  const methods = 'X-HTTP-Method-Override: DELETE\r\nX-Method-Override: DELETE\r\n'
  const paths = 'X-Original-URL: /metrics\r\nX-Rewrite-URL: /metrics\r\nX-Forwarded-Prefix: /evil.example\r\n'
  const hosts = 'Host: evil.example\r\nX-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\n'
  const response = await sendRaw(app.port, `GET /health/live HTTP/1.1\r\n${methods}${paths}${hosts}\r\n`)
  assert.equal(response.status, 200)
  assert.deepEqual(JSON.parse(response.body), { status: 'live' })
  assert.doesNotMatch(JSON.stringify([...response.headers]), /evil/)
  const refused = await sendRaw(app.port, 'GET /nothing HTTP/1.1\r\nHost: evil.example\r\n\r\n')
  assertRefusal(refused, 404, 'Not found')
  assert.doesNotMatch(JSON.stringify([...refused.headers]), /evil/)
})

test('a method that only the parser knows is refused with a request id, and rate limit and maintenance apply', async () => {
  await using app = await startTestApp({ RATE_LIMIT_PATHS: '/', RATE_LIMIT_MAX: '1' })
  const send = () => sendRaw(app.port, 'DESCRIBE /users/1 RTSP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  const first = await send()
  assertRefusal(first, 400, 'Unknown method')
  assertRefusal(await send(), 429, 'Too many requests. Try again later.')
  assert.ok(!app.logs.some(({ level }) => Number(level) > 30))
})
