import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serveAssets } from '../../src/http/files.ts'
import { startTestApp, startTestServer } from '../support/app.ts'
import { query } from '../support/graphql.ts'
import { ask, type RawResponse, sendRaw } from '../support/http.ts'
import { createMember, createOrder, newKey, pay, payOrder, send, sendText, somebody } from '../support/rest.ts'

function cacheControl({ headers }: RawResponse): string | undefined {
  return headers.get('cache-control')
}

test('answers that depend on the caller or contain personal data must not be cached, including errors', async () => {
  await using app = await startTestApp({ RATE_LIMIT_MAX: '2' })
  const member = await createMember(app)
  const order = await createOrder(app, member.id)
  const asked: Readonly<Record<string, Promise<RawResponse>>> = {
    'a list': send(app, 'GET /users'),
    'the head of a list': send(app, 'HEAD /users'),
    'a new user': send(app, 'POST /users', somebody()),
    'a changed user': send(app, `PATCH /users/${member.id}`, { age: 30 }),
    'a deleted user': send(app, 'DELETE /users/999'),
    orders: send(app, `GET /users/${member.id}/orders`),
    items: send(app, `GET /orders/${order.id}/items`),
    'a paid order': payOrder(app, order.id),
    'a payment': pay(app, newKey()),
    'a token': send(app, 'POST /tokens', { email: member.email, password: 'right password' }),
    'a query': query(app, '{ me { email } }', member),
    'a refused query': query(app, '{ nothing }'),
    'no token': send(app, 'GET /users/me'),
    'a wrong token': send(app, 'GET /users', undefined, 'wrong'),
    'an unknown path': send(app, 'GET /nothing'),
    'a wrong method': send(app, 'DELETE /users'),
    'a bad body': sendText(app, 'POST /users', '{'),
    'a bad head': sendRaw(app.port, 'GET /users HTTP/1.1\r\n\r\n'),
    'no HTTP at all': sendRaw(app.port, 'nonsense\r\n\r\n'),
    metrics: send(app, 'GET /metrics'),
  }
  for (const [what, asking] of Object.entries(asked)) {
    const answer = await asking
    assert.deepEqual([answer.headers.get('etag'), cacheControl(answer)], [undefined, 'no-store'], what)
  }
  const tooMany = await query(app, '{ me { email } }', member)
  assert.deepEqual([tooMany.status, cacheControl(tooMany)], [429, 'no-store'])
})

test('answers with an ETag may be kept by the client alone, which must ask before each use, and those that are the same for every caller by all', async () => {
  await using app = await startTestApp()
  const member = await createMember(app)
  const order = await createOrder(app, member.id)
  const { id } = JSON.parse((await pay(app, newKey())).body)
  for (const path of [`/users/${member.id}`, '/users/me', `/orders/${order.id}`, `/payments/${id}`]) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await send(app, `${method} ${path}`, undefined, member.token)
      assert.deepEqual([answer.status, cacheControl(answer)], [200, 'private, no-cache'], path)
      assert.match(answer.headers.get('etag') ?? '', /^"[\w-]{22}"$/, path)
    }
  }
  const expected: Readonly<Record<string, string>> = {
    '/health/live': 'no-cache',
    '/health/ready': 'no-cache',
    '/openapi.json': 'no-cache',
    '/.well-known/jwks.json': 'public, max-age=300',
  }
  for (const [path, value] of Object.entries(expected))
    assert.equal(cacheControl(await ask(app.url + path)), value, path)
  const page = await ask(`${app.url}/graphql`, { headers: { accept: 'text/html' } })
  assert.deepEqual([page.status, cacheControl(page)], [200, 'no-cache'])
})

test('a file that could not be loaded is loaded again for the next request', async () => {
  let loads = 0
  const load = async () => (loads++ === 0 ? assert.fail('no file') : 'content')
  await using server = await startTestServer(fastify => serveAssets(fastify, { file: load }))
  for (const status of [500, 200]) assert.equal((await ask(`${server.url}/file`)).status, status)
})
