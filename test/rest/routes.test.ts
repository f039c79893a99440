import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { prefixes } from '../../src/rest/serve.ts'
import { operations } from '../http/openapi.ts'
import { loggedSecret } from '../mail/mail-server.ts'
import { startTestApp } from '../support/app.ts'
import { ask, type RawResponse } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { keyHeader, logIn, newKey, send, sendText, somebody, someItems } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

type App = Awaited<ReturnType<typeof startTestApp>>

/** A request of the HTTP interface: its documented operation, its path, its body, and the status of its answer. */
interface Call {
  readonly operation: string
  readonly path: string
  readonly body?: object
  readonly token?: string
  readonly key?: string
  readonly status: number
}

const password = 'right password'

function call(app: App, { operation, path, body, token, key }: Call): Promise<RawResponse> {
  const [method = ''] = operation.split(' ')
  const headers = {
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(key !== undefined && keyHeader(key)),
  }
  return ask(app.url + path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
}

/** A user with a token and an order, for the calls below. */
async function cast(app: App) {
  const read = async (line: string, body: object) => JSON.parse((await send(app, line, body)).body)
  const { email } = somebody()
  const { id } = await read('POST /users', { name: 'Ann', email, password })
  const { token } = await read('POST /tokens', { email, password })
  const order = async () => (await read(`POST /users/${id}/orders`, { items: someItems() })).id
  return { id, email, token, pending: await order(), paid: await order(), cancelled: await order() }
}

/** One success of every operation, in an order in which all succeed, and one refusal of each kind. */
async function calls(app: App, prefix: string): Promise<readonly Call[]> {
  const { id, email, token, pending, paid, cancelled } = await cast(app)
  await send(app, 'POST /password-resets', { email })
  const secret = `${prefix}/password-resets/${await loggedSecret(app.logs, email)}`
  const admin = await logIn(app, 'ada@example.com', 'demo-password')
  const user = `${prefix}/users/${id}`
  const one = { operation: 'GET /users/{id}', status: 404 }
  const payment = { operation: 'POST /payments', path: `${prefix}/payments`, body: { amount: 5 }, key: newKey() }
  const pay = { operation: 'POST /orders/{id}/payment', path: `${prefix}/orders/${paid}/payment` }
  return [
    { operation: 'GET /users', path: `${prefix}/users`, status: 200 },
    { operation: 'POST /users', path: `${prefix}/users`, body: somebody(), status: 201 },
    { operation: 'GET /users/me', path: `${prefix}/users/me`, token, status: 200 },
    { operation: 'GET /users/{id}', path: user, status: 200 },
    { operation: 'PUT /users/{id}', path: user, body: { name: 'Ann', email, age: 30 }, status: 200 },
    { operation: 'PATCH /users/{id}', path: user, body: { age: 31 }, status: 200 },
    { operation: 'GET /users/{id}/role', path: `${user}/role`, token: admin, status: 200 },
    { operation: 'PUT /users/{id}/role', path: `${user}/role`, token: admin, body: { role: 'member' }, status: 200 },
    { operation: 'POST /tokens', path: `${prefix}/tokens`, body: { email, password }, status: 200 },
    { operation: 'GET /users/{id}/orders', path: `${user}/orders`, status: 200 },
    { operation: 'POST /users/{id}/orders', path: `${user}/orders`, body: { items: someItems() }, status: 201 },
    { operation: 'GET /orders', path: `${prefix}/orders?limit=1&sort=-id`, status: 200 },
    { operation: 'GET /orders/{id}', path: `${prefix}/orders/${pending}`, status: 200 },
    { operation: 'GET /orders/{id}/items', path: `${prefix}/orders/${pending}/items`, status: 200 },
    { ...pay, status: 200 },
    { operation: 'GET /orders/{id}/tracking', path: `${prefix}/orders/${paid}/tracking`, status: 200 },
    { operation: 'DELETE /orders/{id}', path: `${prefix}/orders/${cancelled}`, status: 204 },
    { ...payment, status: 201 },
    { ...payment, status: 200 },
    { operation: 'GET /payments', path: `${prefix}/payments?limit=1`, status: 200 },
    { operation: 'GET /payments/{id}', path: `${prefix}/payments/1`, status: 200 },
    { ...pay, status: 409 },
    { operation: 'POST /users', path: `${prefix}/users`, body: {}, status: 400 },
    { operation: 'POST /users', path: `${prefix}/users`, body: { ...somebody(), email, password }, status: 409 },
    { operation: 'GET /users/me', path: `${prefix}/users/me`, status: 401 },
    { operation: 'PATCH /users/{id}', path: user, body: { password: 'another password' }, status: 401 },
    { ...one, path: `${prefix}/users/987654321` },
    { ...one, path: `${prefix}/nothing` },
    { operation: 'DELETE /users', path: `${prefix}/users`, status: 405 },
    { operation: 'DELETE /tokens', path: `${prefix}/tokens`, token, status: 204 },
    { operation: 'POST /password-resets', path: `${prefix}/password-resets`, body: { email }, status: 202 },
    { operation: 'PUT /password-resets/{secret}', path: secret, body: { password }, status: 204 },
    { operation: 'DELETE /users/{id}', path: user, status: 204 },
  ]
}

/** The operations on resources. */
const documented = [...operations].filter(([, { isBelowApi }]) => isBelowApi).map(([name]) => name)

describe('Every route', () => {
  const app = shared(() => startTestApp({ DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' }))

  for (const prefix of prefixes) {
    const name = prefix === '' ? 'at the root' : `under ${prefix}`

    it(`R-API-2, R-ERR-3, R-ERR-4: every operation has its status, every answer with a body is JSON and has that Content-Type, and its links are those at the root, ${name}`, async () => {
      const all = await calls(app, prefix)
      for (const each of all) {
        const { status, headers, body } = await call(app, each)
        const what = `${each.operation}, ${each.path}: ${body}`
        assert.equal(status, each.status, what)
        assert.doesNotMatch(JSON.stringify([...headers]) + body, /\/api\b/, `${what}: links have no prefix`)
        if (status === 204) {
          assert.deepEqual([body, headers.get('content-type')], ['', undefined], what)
          continue
        }
        assert.equal(headers.get('content-type'), 'application/json; charset=utf-8', what)
        assert.doesNotThrow(() => JSON.parse(body), what)
      }
      const succeeded = new Set(all.filter(({ status }) => status < 300).map(({ operation }) => operation))
      assert.deepEqual([...succeeded].sort(), documented.sort(), 'every operation was called')
    })
  }

  it('a body that is not an object, or is missing, is refused with 400 by every operation that needs one', async () => {
    const { id } = await cast(app)
    const [required, object] = ['Name and email required', 'Request body must be a JSON object']
    const lines = {
      ...{ 'POST /users': required, [`PUT /users/${id}`]: required, [`PATCH /users/${id}`]: object },
      ...{ [`POST /users/${id}/orders`]: object, 'POST /payments': object },
    }
    const before = await Promise.all(['/users', '/orders', '/payments'].map(path => send(app, `GET ${path}`)))
    for (const [line, error] of Object.entries(lines)) {
      for (const text of ['null', '[]', '"x"', '5', 'true', '[{"name":"A","email":"a@b","amount":5}]', '', undefined]) {
        const response = await sendText(app, line, text, undefined, keyHeader(newKey()))
        assertRefusal(response, 400, error)
      }
    }
    const now = await Promise.all(['/users', '/orders', '/payments'].map(path => send(app, `GET ${path}`)))
    for (const [at, { body }] of now.entries()) assert.equal(body, before[at]?.body)
  })

  it('a method that a path does not have answers 405 with exactly the allowed ones, under both prefixes', async () => {
    const methodsOf = Map.groupBy(documented, name => name.split(' ')[1] ?? '')
    assert.equal(methodsOf.size, 15)
    for (const [path, names] of methodsOf) {
      const has = (method: string) => names.includes(`${method} ${path}`)
      const allow = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].filter(
        method => method === 'OPTIONS' || has(method === 'HEAD' ? 'GET' : method),
      )
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(each => !has(each))) {
        for (const prefix of prefixes) {
          const response = await send(app, `${method} ${prefix}${path.replace(/\{\w+\}/, '1')}`)
          assertRefusal(response, 405, 'Method not allowed')
          assert.equal(response.headers.get('allow'), allow.join(', '), `${method} ${path}`)
        }
      }
    }
  })
})
