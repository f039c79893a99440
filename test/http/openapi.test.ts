import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Ajv2020, type SchemaObject, type ValidateFunction } from 'ajv/dist/2020.js'
import { orderBounds, orderStatuses } from '../../src/core/orders/order.ts'
import { pageBounds } from '../../src/core/page.ts'
import { mostCents } from '../../src/core/payments/payment.ts'
import { profileFields, userBounds } from '../../src/core/users/user.ts'
import { version } from '../../src/http/pages/home.ts'
import { loggedSecret } from '../mail/mail-server.ts'
import { registeredRoutes, startTestApp } from '../support/app.ts'
import { ask, RawConnection, type RawResponse, type Served, sendRaw } from '../support/http.ts'
import { keyHeader, sendText, logIn as tokenOf, wasReplayed } from '../support/rest.ts'
import { codeIn } from './html.ts'
import { examplesOf, type Operation, openApi, openApiFile, operations } from './openapi.ts'

// Objects have only documented fields, in the examples and in real answers.
const components = JSON.parse(JSON.stringify(openApi.components), (_key, value) =>
  value?.type === 'object' && value.properties !== undefined ? { ...value, additionalProperties: false } : value,
)
const ajv = new Ajv2020({
  strict: false,
  allErrors: true,
  formats: { 'date-time': text => !Number.isNaN(Date.parse(text)) },
})

function operation(name: string): Operation {
  return operations.get(name) ?? assert.fail(`${name} is not documented`)
}

function assertValid(schema: object, value: unknown, where: string): void {
  const key = JSON.stringify(schema)
  const validate = validators.get(key) ?? ajv.compile({ ...schema, components })
  validators.set(key, validate)
  assert.ok(validate(value), `${where}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`)
}

/** Validators by the JSON of their schemas, because compiling a schema takes much longer than using it. */
const validators = new Map<string, ValidateFunction>()

const limitHeaders = ['retry-after', 'ratelimit', 'ratelimit-policy']
const otherHeaders = ['location', 'link', 'www-authenticate', 'x-request-id', 'idempotent-replayed', 'etag']
const headersToDocument = [...limitHeaders, ...otherHeaders]
const provoked = new Set<string>()
/** The error messages in real answers, each with its operation and status. */
const heard = new Set<string>()

/** Whether an answer may omit a header that is documented for it. */
function isOptional(name: string, header: string): boolean {
  if (header === 'link') return name.startsWith('GET ') // a list may have only one page
  if (header === 'idempotent-replayed') return name === 'POST /orders/{id}/payment'
  return header.startsWith('ratelimit')
}

/** Checks an answer against the documented operation and status. */
function assertDocumented(name: string, status: number, response: RawResponse, as = String(status)): void {
  const where = `${name} ${status}`
  assert.equal(response.status, status, `${where}: ${response.body}`)
  const { headers = {}, content } = operation(name).responses[as] ?? assert.fail(`${where} is not documented`)
  const documented = new Map(Object.entries(headers).map(([header, { schema }]) => [header.toLowerCase(), schema]))
  for (const [header, value] of response.headers) {
    const schema = documented.get(header)
    if (schema !== undefined) assertValid(schema, value, `${where} ${header}`)
    else assert.ok(!headersToDocument.includes(header), `${where}: the header ${header} is not documented`)
  }
  const needed = [...documented.keys()].filter(header => !isOptional(name, header))
  for (const header of needed) assert.ok(response.headers.has(header), `${where}: the header ${header} is missing`)
  if (content === undefined) assert.equal(response.body, '')
  else {
    const [type] = response.headers.get('content-type')?.split(';') ?? []
    const { schema } = content[type ?? ''] ?? assert.fail(`${where}: the type ${type} is not documented`)
    assertValid(schema, type === 'application/json' ? JSON.parse(response.body) : response.body, where)
  }
  provoked.add(`${name} ${as}`)
  if (status >= 400) heard.add(`${where}: ${JSON.parse(response.body).error}`)
}

interface Request {
  readonly body?: unknown
  readonly token?: string
  readonly id?: string
  readonly query?: string
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
}

function send(app: Served, name: string, { body, token, id = '1', query = '', key, headers }: Request = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const own = { ...(key !== undefined && keyHeader(key)), ...headers }
  return sendText(app, name.replace(/\{\w+\}/, id) + query, text, token, own)
}

/** Sends requests to an app, and checks that the answers are as documented. */
function checkOn(app: Served, usual: Request = {}) {
  return async (name: string, status: number, request?: Request): Promise<RawResponse> => {
    const response = await send(app, name, { ...usual, ...request })
    assertDocumented(name, status, response)
    return response
  }
}

async function logIn(app: Served, email: string): Promise<string> {
  const { body } = await checkOn(app)('POST /tokens', 200, { body: { email, password: 'demo-password' } })
  return JSON.parse(body).token
}

function withStatus(status: number): readonly string[] {
  return [...operations].filter(([, { responses }]) => String(status) in responses).map(([name]) => name)
}

function tagged(...tags: readonly string[]): readonly string[] {
  return [...operations].filter(([, operation]) => operation.tags.some(tag => tags.includes(tag))).map(([name]) => name)
}

test('/openapi.json is api/openapi.yaml, with the version of the package', async () => {
  await using app = await startTestApp()
  const { status, headers, body } = await ask(`${app.url}/openapi.json`)
  assert.deepEqual([status, headers.get('content-type')], [200, 'application/json; charset=utf-8'])
  assert.deepEqual(JSON.parse(body), openApi)
  assert.equal(openApi.info.version, version)
})

test("the document passes Redocly's recommended rules without an error or a warning", async () => {
  const config = await createConfig({ extends: ['recommended'] })
  const problems = await lintFromString({ source: readFileSync(openApiFile, 'utf8'), absoluteRef: openApiFile, config })
  const told = problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`)
  assert.deepEqual(told, [])
})

/** Routes outside the HTTP interface: pages and their files, the typed client, and GraphQL, which has its own. */
const files = /api\/?|openapi\.json|(client|header|reading|try)\.js|pages\.css|favicon\.ico|icon\.svg/
const pages = /(docs|graphiql|console)(\/[\w.*-]*)?/
const undocumented = new RegExp(`^(GET \\/(${files.source}|${pages.source})|(GET|POST) \\/graphql)$`)

test('every route is documented, and every documented operation is a route, below /api too', async () => {
  const routes = [...(await registeredRoutes())].map(name => name.replaceAll(/:(\w+)/g, '{$1}'))
  const prefixed = [...operations]
    .filter(([, { isBelowApi }]) => isBelowApi)
    .map(([name]) => name.replace(' ', ' /api'))
  assert.ok(prefixed.includes('GET /api/users'))
  assert.deepEqual(routes.filter(name => !undocumented.test(name)).sort(), [...operations.keys(), ...prefixed].sort())
})

test('R-API-3, R-API-4, R-API-5: paths consist of plural collections, ids and sub-resources, and no path contains an action', () => {
  const collection = /^(users|orders|payments|tokens|password-resets)(\/\{(id|secret)\})?$/
  const below = ['users/{id}/orders', 'orders/{id}/items']
  /** Resources that exist once per item of a collection. */
  const parts = ['orders/{id}/payment', 'orders/{id}/tracking', 'users/me', 'users/{id}/role']
  const resources = tagged('Users', 'Orders', 'Payments', 'Tokens', 'Password resets')
  const paths = new Set(resources.map(name => name.replace(/^\w+ \//, '')))
  const others = [...paths].filter(path => !collection.test(path))
  assert.deepEqual(others.toSorted(), [...below, ...parts].toSorted())
})

test('every operation has an example of each request and response body, and every example matches its schema', () => {
  for (const [name, { parameters, requestBody, responses }] of operations) {
    const answers = Object.entries(responses).map(([status, { content }]) => [`${name} ${status}`, content] as const)
    for (const [where, content = {}] of [[name, requestBody?.content] as const, ...answers]) {
      for (const media of Object.values(content)) {
        assert.notEqual(examplesOf(media).length, 0, `${where} has no example`)
        for (const example of examplesOf(media)) assertValid(media.schema, example, where)
      }
    }
    for (const { schema, example } of parameters) if (example !== undefined) assertValid(schema, example, name)
    for (const { headers = {} } of Object.values(responses)) {
      for (const [header, { schema, example }] of Object.entries(headers)) assertValid(schema, example, header)
    }
  }
})

test('the fields and bounds of the document are those of the code', () => {
  const { User, UserInput, UserChanges, Order, OrderInput, OrderItem, PaymentInput } = openApi.components.schemas
  const fieldsOf = (schema?: SchemaObject) => schema?.properties ?? assert.fail()
  const mostOf = (schema?: SchemaObject) => schema?.maxLength ?? schema?.maximum
  const fields = ['name', 'email', ...profileFields]
  assert.deepEqual(Object.keys(fieldsOf(User)).toSorted(), ['id', ...fields].toSorted())
  for (const input of [UserInput, UserChanges]) {
    assert.deepEqual(Object.keys(fieldsOf(input)).toSorted(), [...fields, 'password'].toSorted())
    assert.equal(fieldsOf(input).password?.minLength, userBounds.password.least)
    assert.equal(mostOf(fieldsOf(input).password), userBounds.password.most)
  }
  for (const schema of [User, UserInput, UserChanges]) {
    for (const name of fields) {
      const bound: number | { readonly most: number } = Reflect.get(userBounds, name)
      assert.equal(mostOf(fieldsOf(schema)[name]), typeof bound === 'number' ? bound : bound.most, name)
    }
  }
  const { items } = fieldsOf(OrderInput)
  assert.equal(items?.maxItems, orderBounds.items)
  for (const item of [items?.items, OrderItem]) {
    for (const name of ['name', 'quantity', 'price'] as const)
      assert.equal(mostOf(fieldsOf(item)[name]), orderBounds[name])
  }
  assert.equal(mostOf(fieldsOf(Order).amount), orderBounds.amount)
  assert.equal((mostOf(fieldsOf(PaymentInput).amount) ?? 0) * 100, mostCents)
  assert.deepEqual(fieldsOf(Order).status?.enum, orderStatuses)
  for (const { parameters } of operations.values()) {
    for (const { name, schema } of parameters) {
      if (name === 'limit' || name === 'offset') assert.equal(schema.maximum, pageBounds[name])
      if (name === 'q') assert.deepEqual({ least: schema.minLength, most: schema.maxLength }, userBounds.search)
      if (name === 'id' || name === 'after')
        assert.deepEqual([schema.minimum, schema.maximum], [1, Number.MAX_SAFE_INTEGER])
    }
  }
})

test('every command that the API reference shows gets the status and the fields that it shows, on the demo data', async () => {
  await using app = await startTestApp({ DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' })
  const { body: page } = await ask(`${app.url}/docs/api`)
  const forms = Array.from(
    page.matchAll(/<form class="operation" data-method="(\w+)" data-path="([^"]+)".*?<\/form>/gs),
  )
  assert.equal(forms.length, operations.size)
  const order = ['GET', 'POST', 'PATCH', 'PUT'] // in which none takes away what a later one needs
  const rank = ([, method = '', path = '']: readonly string[]) => order.indexOf(method) * 100 - path.length
  for (const [form, method] of forms.toSorted((a, b) => rank(a) - rank(b))) {
    if (form.includes('{secret}')) continue // only a mail has one that is valid
    await using own = method === 'DELETE' ? await startTestApp({ DEMO_DATA: 'true' }) : undefined
    const { url } = own ?? app
    const [command = '', example] = codeIn(form)
    const needsToken = command.includes('$TOKEN')
    const TOKEN = needsToken ? await tokenOf({ url }, 'ada@example.com', 'demo-password') : ''
    const { stdout } = await run('sh', ['-c', command.replace(app.url, url)], { env: { ...process.env, TOKEN } })
    const [head = '', answer = ''] = stdout.split('\r\n\r\n')
    assert.equal(head.split(' ')[1], /<output[^>]*><b>(\d+)/.exec(form)?.[1], `${command}\n${stdout}`)
    assert.deepEqual(fieldsOf(answer), fieldsOf(example ?? ''), command)
  }
})

const run = promisify(execFile)

/** The names of the fields of a JSON object, or of the first one in a list. */
function fieldsOf(text: string): readonly string[] {
  if (!/^[[{]/.test(text)) return []
  const [value] = [JSON.parse(text)].flat()
  return Object.keys(value)
}

test('successful requests about users are answered as documented, and the example bodies succeed', async () => {
  await using app = await startTestApp({ DEMO_DATA: 'true' })
  const check = checkOn(app)
  for (const path of ['/', '/health/live', '/health/ready', '/metrics', '/.well-known/jwks.json'])
    await check(`GET ${path}`, 200)
  for (const body of operation('POST /tokens').bodies) await check('POST /tokens', 200, { body })
  await check('POST /tokens', 200, { token: await logIn(app, 'grace@example.com') })
  await check('DELETE /tokens', 204, { token: await logIn(app, 'grace@example.com') })
  const token = await logIn(app, 'ada@example.com')
  await check('GET /users', 200, { token })
  for (const query of ['?limit=2&offset=2', '?after=2', '?email=ADA@example.com', '?q=AD'])
    await check('GET /users', 200, { query })
  await check('GET /users/me', 200, { token })
  for (const name of ['GET /users/me', 'GET /users/{id}'])
    await check(name, 304, { token, headers: { 'if-none-match': '*' } })
  await check('GET /users/{id}', 200)
  await check('GET /users/{id}/role', 200, { token })
  for (const body of operation('PUT /users/{id}/role').bodies)
    await check('PUT /users/{id}/role', 200, { token, id: '3', body })
  for (const body of operation('PATCH /users/{id}').bodies) await check('PATCH /users/{id}', 200, { body })
  for (const body of operation('POST /users').bodies) await check('POST /users', 201, { body })
  await check('DELETE /users/{id}', 204, { id: '7' })
  for (const [index, body] of operation('PUT /users/{id}').bodies.entries()) {
    await check('PUT /users/{id}', 201, { body, id: String(100 + index) })
    await check('PUT /users/{id}', 200, { body, id: String(100 + index), token })
  }
  for (const body of operation('POST /password-resets').bodies) await check('POST /password-resets', 202, { body })
  for (const body of [{}, { email: 'ada' }]) await check('POST /password-resets', 400, { body })
  const id = await loggedSecret(app.logs, 'ada@example.com')
  for (const body of [{ password: 'short' }, '{']) await check('PUT /password-resets/{secret}', 400, { id, body })
  const [body] = operation('PUT /password-resets/{secret}').bodies
  for (const status of [204, 404]) await check('PUT /password-resets/{secret}', status, { id, body })
})

test('successful orders and payments are answered as documented, and the example bodies succeed', async () => {
  await using app = await startTestApp({ DEMO_DATA: 'true' })
  const check = checkOn(app)
  await check('GET /users/{id}/orders', 200)
  for (const query of ['?after=1', '?status=shipped', '?sort=-id'])
    for (const name of ['GET /users/{id}/orders', 'GET /orders']) await check(name, 200, { query })
  await check('GET /payments', 200, { query: '?sort=-id&limit=1' })
  const page = await check('GET /users/{id}/orders', 200, { query: '?limit=1&offset=1' })
  assert.match(page.headers.get('link') ?? '', /rel="prev"/)
  for (const body of operation('POST /users/{id}/orders').bodies) await check('POST /users/{id}/orders', 201, { body })
  for (const id of ['1', '2']) {
    await check('GET /orders/{id}', 200, { id })
    await check('GET /orders/{id}/items', 200, { id })
    await check('GET /orders/{id}', 304, { id, headers: { 'if-none-match': '*' } })
  }
  await check('GET /orders/{id}/tracking', 200, { id: '2' })
  const paid = await check('POST /orders/{id}/payment', 200, { key: 'k' })
  const replayed = await check('POST /orders/{id}/payment', 200, { key: 'k', body: {} })
  assert.deepEqual([paid, replayed].map(wasReplayed), [false, true])
  const [, payment = ''] = /payments\/(\d+)/.exec(paid.headers.get('link') ?? '') ?? []
  await check('GET /payments/{id}', 200, { id: payment })
  await check('GET /payments/{id}', 304, { id: payment, headers: { 'if-none-match': '*' } })
  for (const [index, body] of operation('POST /payments').bodies.entries()) {
    const made = await check('POST /payments', 201, { body, key: `key-${index}` })
    await check('POST /payments', 200, { body, key: `"key-${index}"` })
    await check('GET /payments/{id}', 200, { id: String(JSON.parse(made.body).id) })
  }
  const { body } = await check('POST /users/{id}/orders', 201, { body: operation('POST /users/{id}/orders').bodies[0] })
  for (const id of [String(JSON.parse(body).id), '999']) await check('DELETE /orders/{id}', 204, { id })
  // Amounts that a validator must not divide in floating point.
  for (const amount of [0.01, 0.29, 0.57, 4.35, 1.1, 999_999_999_999.99, 1_000_000_000_000]) {
    assertValid({ $ref: '#/components/schemas/PaymentInput' }, { amount }, 'the body')
    await check('POST /payments', 201, { body: { amount }, key: `key-${amount}` })
  }
})

test('refused orders and payments are answered as documented', async () => {
  await using app = await startTestApp({ DEMO_DATA: 'true', ACCESS_POLICY: 'enforced' })
  const ada = await logIn(app, 'ada@example.com')
  const grace = await logIn(app, 'grace@example.com')
  const check = checkOn(app, { token: ada })
  const operationsHere = tagged('Orders', 'Payments')
  assert.equal(operationsHere.length, 11)
  for (const name of operationsHere) {
    assertDocumented(name, 401, await send(app, name))
    if (name.includes('{id}')) await check(name, 400, { id: '%zz' })
  }
  for (const name of operationsHere.filter(name => withStatus(404).includes(name))) {
    const body = operation(name).bodies[0]
    await check(name, 404, { id: '999', body })
    if (!name.includes('/users/')) await check(name, 404, { id: '1', token: grace })
  }
  await check('GET /orders/{id}/tracking', 404)
  await check('POST /orders/{id}/payment', 409, { id: '2' })
  await check('DELETE /orders/{id}', 409, { id: '2' })
  for (const name of operationsHere.filter(name => withStatus(412).includes(name))) {
    await check(name, 412, { headers: { 'if-match': '"x"' } })
    await check(name, 400, { headers: { 'if-match': 'x' } })
  }
  for (const query of ['?limit=0', '?after=0', '?after=1&offset=1', '?sort=name'])
    for (const name of ['GET /users/{id}/orders', 'GET /orders', 'GET /payments']) await check(name, 400, { query })
  for (const name of ['GET /users/{id}/orders', 'GET /orders']) await check(name, 400, { query: '?status=paid' })
  const item = { name: 'x', quantity: 1, price: 1 }
  const bad = [{}, { items: [{ ...item, quantity: 0 }] }, { items: [{ ...item, price: 0 }] }, '[]', '{']
  for (const body of bad) await check('POST /users/{id}/orders', 400, { body })
  await check('POST /orders/{id}/payment', 400, { key: 'a b' })
  await check('POST /orders/{id}/payment', 400, { body: '{' })
  await check('POST /payments', 400, { body: { amount: 5 } })
  await check('POST /payments', 400, { body: { amount: 5 }, key: 'a b' })
  for (const body of [{ amount: 0 }, '[]', '{']) await check('POST /payments', 400, { body, key: 'k' })
})

test('requests that operations refuse are answered as documented', async () => {
  await using app = await startTestApp({ DEMO_DATA: 'true', ACCESS_POLICY: 'enforced', METRICS_TOKEN: 'secret' })
  const check = checkOn(app)
  const grace = await logIn(app, 'grace@example.com')
  const ada = await logIn(app, 'ada@example.com')
  const taken = { name: 'A', email: 'ada@example.com', password: 'demo-password' }
  await check('POST /tokens', 401, { body: { email: 'ada@example.com', password: 'wrong' } })
  await check('POST /tokens', 400, { body: {} })
  await check('GET /metrics', 401)
  const search = ['?email=ada', '?q=a', '?q=ab&email=a@b', '?q=ab&offset=1']
  for (const query of ['?limit=0', '?after=0', '?after=1&offset=1', '?sort=name', ...search])
    await check('GET /users', 400, { token: ada, query })
  await check('GET /users/me', 401)
  await check('POST /tokens', 401, { token: 'dead' })
  await check('DELETE /tokens', 401)
  await check('DELETE /tokens', 401, { token: 'dead' })
  await using closed = await startTestApp({ DEMO_DATA: 'true', SIGN_UP: 'closed' })
  const member = await logIn(closed, 'grace@example.com')
  for (const [status, token] of [[401], [403, member]] as const)
    await checkOn(closed)('POST /users', status, { body: taken, ...(token && { token }) })
  for (const name of withStatus(403).filter(name => name !== 'POST /users')) {
    await check(name, 401)
    await check(name, 403, { token: grace, body: name.startsWith('P') ? taken : undefined })
  }
  for (const name of ['GET /users/{id}', 'PATCH /users/{id}', 'GET /users/{id}/role', 'PUT /users/{id}/role']) {
    await check(name, 404, { token: ada, id: '999', body: name.startsWith('P') ? { role: 'admin' } : undefined })
  }
  await check('PUT /users/{id}/role', 409, { token: ada, body: { role: 'member' } })
  for (const body of [{ role: 'root' }, '{', '[]']) await check('PUT /users/{id}/role', 400, { token: ada, body })
  for (const name of tagged('Users', 'Orders').filter(
    name => withStatus(409).includes(name) && !name.endsWith('/role'),
  )) {
    await check(name, 409, { token: ada, id: '2', body: taken })
  }
  for (const name of ['POST /users', 'PUT /users/{id}', 'PATCH /users/{id}']) {
    for (const body of [{ name: '' }, '{', '[]']) await check(name, 400, { token: ada, body })
  }
  await check('PUT /users/{id}', 400, { token: ada, id: 'x', body: taken })
  for (const name of withStatus(412).filter(name => name.includes('/users/'))) {
    const request = { token: ada, ...(!name.startsWith('DELETE') && { body: taken }) }
    await check(name, 412, { ...request, headers: { 'if-match': '"x"' } })
    await check(name, 412, { ...request, headers: { 'if-none-match': '*' } })
    await check(name, 400, { ...request, headers: { 'if-match': 'x' } })
  }
})

test('requests that are refused on every path are answered as documented', async () => {
  await using app = await startTestApp({ BODY_LIMIT_BYTES: '2048' })
  for (const name of operations.keys()) {
    const target = name.replace('{id}', '1')
    const twoHosts = `${target} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n`
    assertDocumented(name, 400, await sendRaw(app.port, twoHosts))
    const expecting = `${target} HTTP/1.1\r\nHost: a\r\nExpect: a-miracle\r\n\r\n`
    assertDocumented(name, 417, await sendRaw(app.port, expecting), 'default')
  }
  for (const name of withStatus(401).filter(name => !/tokens|metrics/.test(name))) {
    assertDocumented(name, 401, await send(app, name, { token: 'x' }))
  }
  for (const name of withStatus(413)) {
    const key = 'k' // a key for the payment, because it is checked before the body
    assertDocumented(name, 413, await send(app, name, { key, body: 'x'.repeat(4096) }))
    assertDocumented(name, 415, await send(app, name, { key, body: 'x', headers: { 'content-type': 'text/plain' } }))
  }
})

test('under maintenance, above the rate limit and with metrics off, requests are answered as documented', async () => {
  const health = /^GET \/health\//
  await using closed = await startTestApp({ MAINTENANCE: 'on' })
  for (const name of withStatus(503).filter(name => !health.test(name))) {
    assertDocumented(name, 503, await send(closed, name))
  }
  await using limited = await startTestApp({ RATE_LIMIT_PATHS: '/', LOG_LEVEL: 'error' })
  using connection = await RawConnection.open(limited.port)
  for (const method of ['GET', ...Array(10).fill('OPTIONS')]) {
    connection.write(`${method} /users HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(100))
    for (let sent = 0; sent < 100; sent++) assert.ok((await connection.response()).status < 300)
  }
  assert.deepEqual(withStatus(429), [...operations.keys()])
  for (const name of operations.keys()) assertDocumented(name, 429, await send(limited, name))
  await using production = await startTestApp({ NODE_ENV: 'production' })
  assertDocumented('GET /metrics', 404, await send(production, 'GET /metrics'))
})

// Every documented status is tested here, except those that need an internal error or special timing, and every
// documented message about orders and payments.
after(() => {
  const rare = / 500$|^GET \/users\/me 404$|^GET \/health\/ready 503$/
  for (const [name, { responses }] of operations) {
    for (const [status, { content = {} }] of Object.entries(responses)) {
      const where = `${name} ${status}`
      assert.ok(provoked.has(where) || rare.test(where), `${where} is not tested`)
      if (!tagged('Orders', 'Payments').includes(name) || !/400|404|409/.test(status)) continue
      for (const { error } of Object.values(content).flatMap(examplesOf) as readonly { error: string }[])
        assert.ok(heard.has(`${where}: ${error}`), `${where} was never heard: ${error}`)
    }
  }
})
