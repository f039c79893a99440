import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { prefixes } from '../../src/rest/serve.ts'
import { operations } from '../http/openapi.ts'
import { loggedSecret } from '../mail/mail-server.ts'
import { startTestApp } from '../support/app.ts'
import { assertRefusal } from '../support/refusal.ts'
import {
  atOnce,
  createMember,
  createOrder,
  createUser,
  keyHeader,
  logIn,
  newKey,
  send,
  sendText,
  somebody,
  someItems,
} from '../support/rest.ts'
import { shared } from '../support/shared.ts'

/** A request: its documented operation, its path, the status of its answer, and more. */
type Call = readonly [operation: string, path: string, status: number, more?: More]

interface More {
  readonly body?: object
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
}

type App = Awaited<ReturnType<typeof startTestApp>>
const password = 'right password'

/** One success of every operation, in an order in which all succeed, and one refusal of each kind. */
async function calls(app: App): Promise<readonly Call[]> {
  const { id, email, token } = await createMember(app)
  const [pending, paid, cancelled] = await atOnce(3, async () => (await createOrder(app, id)).id)
  await send(app, 'POST /password-resets', { email })
  const secret = `/password-resets/${await loggedSecret(app.logs, email)}`
  const admin = await logIn(app, 'ada@example.com', 'demo-password')
  const [user, order] = [`/users/${id}`, (which?: number) => `/orders/${which}`]
  const payment = { body: { amount: 5 }, headers: keyHeader(newKey()) }
  return [
    ['GET /users', '/users', 200],
    ['POST /users', '/users', 201, { body: somebody() }],
    ['GET /users/me', '/users/me', 200, { token }],
    ['GET /users/{id}', user, 200],
    ['PUT /users/{id}', user, 200, { body: { name: 'Ann', email, age: 30 } }],
    ['PATCH /users/{id}', user, 200, { body: { age: 31 } }],
    ['GET /users/{id}/role', `${user}/role`, 200, { token: admin }],
    ['PUT /users/{id}/role', `${user}/role`, 200, { token: admin, body: { role: 'member' } }],
    ['POST /tokens', '/tokens', 200, { body: { email, password } }],
    ['GET /users/{id}/orders', `${user}/orders`, 200],
    ['POST /users/{id}/orders', `${user}/orders`, 201, { body: { items: someItems() } }],
    ['GET /orders', '/orders?limit=1&sort=-id', 200],
    ['GET /orders/{id}', order(pending), 200],
    ['GET /orders/{id}/items', `${order(pending)}/items`, 200],
    ['POST /orders/{id}/payment', `${order(paid)}/payment`, 200],
    ['GET /orders/{id}/tracking', `${order(paid)}/tracking`, 200],
    ['DELETE /orders/{id}', order(cancelled), 204],
    ['POST /payments', '/payments', 201, payment],
    ['POST /payments', '/payments', 200, payment],
    ['GET /payments', '/payments?limit=1', 200],
    ['GET /payments/{id}', '/payments/1', 200],
    ['POST /orders/{id}/payment', `${order(paid)}/payment`, 409],
    ['POST /users', '/users', 400, { body: {} }],
    ['POST /users', '/users', 409, { body: { ...somebody(), email, password } }],
    ['GET /users/me', '/users/me', 401],
    ['PATCH /users/{id}', user, 401, { body: { password: 'another password' } }],
    ['GET /users/{id}', '/users/987654321', 404],
    ['GET /users/{id}', '/nothing', 404],
    ['DELETE /users', '/users', 405],
    ['DELETE /tokens', '/tokens', 204, { token }],
    ['POST /password-resets', '/password-resets', 202, { body: { email } }],
    ['PUT /password-resets/{secret}', secret, 204, { body: { password } }],
    ['DELETE /users/{id}', user, 204],
  ]
}

/** The operations on resources. */
const documented = [...operations].filter(([, { isBelowApi }]) => isBelowApi).map(([name]) => name)

describe('Every route', () => {
  const app = shared(() => startTestApp({ DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' }))

  for (const prefix of prefixes) {
    const name = prefix === '' ? 'at the root' : `under ${prefix}`

    it(`R-API-2, R-ERR-3, R-ERR-4: every operation has its status, every answer with a body is JSON and has that Content-Type, and its links are those at the root, ${name}`, async () => {
      const all = await calls(app)
      for (const [operation, path, expected, { body: sent, token, headers: own } = {}] of all) {
        const line = operation.replace(/ .*/, ` ${prefix}${path}`)
        const { status, headers, body } = await sendText(app, line, sent && JSON.stringify(sent), token, own)
        const what = `${operation}, ${path}: ${body}`
        assert.equal(status, expected, what)
        assert.doesNotMatch(JSON.stringify([...headers]) + body, /\/api\b/, `${what}: links have no prefix`)
        if (status === 204) {
          assert.deepEqual([body, headers.get('content-type')], ['', undefined], what)
          continue
        }
        assert.equal(headers.get('content-type'), 'application/json; charset=utf-8', what)
        assert.doesNotThrow(() => JSON.parse(body), what)
      }
      const succeeded = new Set(all.filter(([, , status]) => status < 300).map(([operation]) => operation))
      assert.deepEqual([...succeeded].sort(), documented.sort(), 'every operation was called')
    })
  }

  it('a body that is not an object, or is missing, is refused with 400 by every operation that needs one', async () => {
    const { id } = await createUser(app)
    const [required, object] = ['Name and email required', 'Request body must be a JSON object']
    const lines = {
      ...{ 'POST /users': required, [`PUT /users/${id}`]: required, [`PATCH /users/${id}`]: object },
      ...{ [`POST /users/${id}/orders`]: object, 'POST /payments': object },
    }
    const listed = async () => {
      const answers = await Promise.all(['/users', '/orders', '/payments'].map(path => send(app, `GET ${path}`)))
      return answers.map(({ body }) => body)
    }
    const before = await listed()
    for (const [line, error] of Object.entries(lines)) {
      for (const text of ['null', '[]', '"x"', '5', 'true', '[{"name":"A","email":"a@b","amount":5}]', '', undefined]) {
        assertRefusal(await sendText(app, line, text, undefined, keyHeader(newKey())), 400, error)
      }
    }
    assert.deepEqual(await listed(), before)
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
