import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { ask, type RawResponse } from '../support/http.ts'
import { logIn, sendText } from '../support/rest.ts'

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly example?: unknown
  readonly schema: { readonly default?: unknown; readonly example?: unknown }
}

interface Operation {
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[]
  readonly security: readonly object[]
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly examples: object } } }
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly parameters: Readonly<Record<string, Parameter>> }
}

const methods = ['get', 'post', 'put', 'patch', 'delete']

const readDocument = async (app: { url: string }): Promise<Document> =>
  JSON.parse((await ask(`${app.url}/openapi.json`)).body)

/** Sends what Swagger UI has filled in when a person presses Execute, and what that person has typed. */
async function execute(
  app: { url: string },
  document: Document,
  [method, path]: readonly [string, string],
  typed: Readonly<Record<string, string>> = {},
): Promise<RawResponse> {
  const { parameters = [], security, requestBody } = document.paths[path]?.[method] ?? assert.fail()
  const query = new URLSearchParams()
  const headers: Record<string, string> = {}
  let target = path
  for (const each of parameters) {
    const parameter = '$ref' in each ? document.components.parameters[each.$ref.split('/').at(-1) ?? ''] : each
    const { name, in: place, example, schema } = parameter ?? assert.fail()
    const value = typed[name] ?? example ?? schema.example ?? schema.default
    if (value === undefined) continue
    if (place === 'path') target = target.replace(`{${name}}`, String(value))
    else if (place === 'query') query.set(name, String(value))
    else headers[name.toLowerCase()] = String(value)
  }
  const [body] = Object.values(requestBody?.content['application/json'].examples ?? {})
  const needsToken = security.length > 0 && security.every(scheme => 'token' in scheme)
  const token = needsToken ? await logIn(app, 'ada@example.com', 'demo-password') : undefined
  const line = `${method.toUpperCase()} ${target}${query.size === 0 ? '' : `?${query}`}`
  return sendText(app, line, body && JSON.stringify(body.value), token, headers)
}

test('every request that the API reference prefills succeeds on the demo data', async () => {
  await using described = await startTestApp()
  const document = await readDocument(described)
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const method of Object.keys(operations).filter(key => methods.includes(key))) {
      await using app = await startTestApp({ DEMO_DATA: 'true' }) // a new one, because some requests delete
      const { status, body } = await execute(app, document, [method, path])
      assert.ok([200, 201, 204].includes(status), `${method} ${path}: ${status} ${body}`)
    }
  }
})

test('after can be typed into the prefilled request of every list that takes it', async () => {
  await using app = await startTestApp({ DEMO_DATA: 'true' })
  const document = await readDocument(app)
  for (const path of ['/users', '/users/{id}/orders']) {
    const { status, body } = await execute(app, document, ['get', path], { after: '1' })
    assert.equal(status, 200, `${path}: ${body}`)
    assert.equal(JSON.parse(body)[0].id, 2)
  }
})
