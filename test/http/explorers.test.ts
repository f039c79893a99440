import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getIntrospectionQuery } from 'graphql'
import { startTestApp } from '../support/app.ts'
import { assertRefused, get, query, read } from '../support/graphql.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { assertRefusal } from '../support/refusal.ts'
import { SocketClient } from '../support/sockets.ts'

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const asksForSchema = [
  getIntrospectionQuery(),
  '{ __schema { queryType { name } } }',
  '{ __type(name: "User") { name } }',
  '{ ...F } fragment F on Query { a: __schema { queryType { name } } }',
]

for (const [name, env] of Object.entries({
  'INTROSPECTION=off': { INTROSPECTION: 'off' },
  production: { NODE_ENV: 'production', TOKEN_KEYS: tokenKeys },
})) {
  test(`with ${name} introspection is refused by every transport, and __typename works`, async () => {
    await using app = await startTestApp({ RATE_LIMIT_MAX: '0', ...env })
    using client = await SocketClient.connect(app)
    for (const text of asksForSchema) {
      for (const refused of [await query(app, text), await get(app, { query: text })]) {
        assertRefused(refused, 400, 'GRAPHQL_VALIDATION_FAILED', /introspection has been disabled/i)
      }
      const { errors } = await client.ask(text)
      assert.equal(errors?.[0]?.extensions.code, 'GRAPHQL_VALIDATION_FAILED')
    }
    const data = { __typename: 'Query', posts: [] }
    assert.deepEqual(await read(app, '{ __typename posts { __typename } }'), data)
    assertRefused(await query(app, '{ pots { id } }'), 400, 'GRAPHQL_VALIDATION_FAILED', /^(?!.*Did you mean)/)
  })
}

test('by default introspection works, and in production if INTROSPECTION is on', async () => {
  for (const env of [{}, { NODE_ENV: 'production', INTROSPECTION: 'on', TOKEN_KEYS: tokenKeys }]) {
    await using app = await startTestApp({ RATE_LIMIT_MAX: '0', ...env })
    for (const text of asksForSchema) await read(app, text)
  }
})

for (const [name, env] of Object.entries({
  'EXPLORERS=off': { EXPLORERS: 'off' },
  production: { NODE_ENV: 'production', TOKEN_KEYS: tokenKeys },
})) {
  test(`with ${name} there are no pages, and a browser gets the same answer as any client`, async () => {
    await using app = await startTestApp({ RATE_LIMIT_MAX: '0', ...env })
    const page = await ask(`${app.url}/docs`, { headers: { accept: browser } })
    assertRefusal(page, 404, 'Not found')
    const headers = { accept: browser }
    const answer = await ask(`${app.url}/graphql?query={__typename}`, { headers })
    assert.deepEqual([answer.status, answer.body], [200, '{"data":{"__typename":"Query"}}'])
    assertRefused(await ask(`${app.url}/graphql`, { headers }), 400, 'BAD_REQUEST')
    assert.equal((await ask(`${app.url}/openapi.json`)).status, 200)
  })
}

test('in production with EXPLORERS=on there are pages', async () => {
  await using app = await startTestApp({ NODE_ENV: 'production', EXPLORERS: 'on', TOKEN_KEYS: tokenKeys })
  for (const path of ['/docs', '/graphql', '/console']) {
    const { status, headers } = await ask(app.url + path, { headers: { accept: browser } })
    assert.deepEqual([status, headers.get('content-type')], [200, 'text/html; charset=utf-8'])
  }
})
