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

const production = { NODE_ENV: 'production', TOKEN_KEYS: tokenKeys, RATE_LIMIT_MAX: '0' }

test('in production introspection is refused by every transport, and __typename works', async () => {
  await using app = await startTestApp(production)
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
})

test('in production there are no pages, no links to pages, and a browser gets the same answer as any client', async () => {
  await using app = await startTestApp({ ...production, LINK_PREFIX: '/shop' })
  const headers = { accept: browser }
  const pages = ['/docs', '/docs/', '/docs/graphql', '/docs/search.json', '/console', '/nowhere']
  for (const path of [...pages, '/pages.css', '/header.js', '/reading.js', '/try.js', '/icon.svg'])
    assertRefusal(await ask(app.url + path, { headers }), 404, 'Not found')
  const home = await ask(app.url, { headers })
  assert.equal(home.headers.get('content-type'), 'application/json; charset=utf-8')
  const links = { graphql: '/shop/graphql', openapi: '/shop/openapi.json', health: '/shop/health/ready' }
  assert.deepEqual(JSON.parse(home.body).links, links)
  const answer = await ask(`${app.url}/graphql?query={__typename}`, { headers })
  assert.deepEqual([answer.status, answer.body], [200, '{"data":{"__typename":"Query"}}'])
  assertRefused(await ask(`${app.url}/graphql`, { headers }), 400, 'BAD_REQUEST')
  assert.equal((await ask(`${app.url}/openapi.json`)).status, 200)
})

test('in production with EXPLORERS and INTROSPECTION on there are pages and introspection', async () => {
  await using app = await startTestApp({ ...production, EXPLORERS: 'on', INTROSPECTION: 'on' })
  for (const text of asksForSchema) await read(app, text)
  for (const path of ['/docs', '/docs/api', '/graphql', '/console']) {
    const { status, headers } = await ask(app.url + path, { headers: { accept: browser } })
    assert.deepEqual([status, headers.get('content-type')], [200, 'text/html; charset=utf-8'])
  }
})

test('a browser gets a page at an unknown address, with links that lead back, and programs get JSON', async () => {
  await using app = await startTestApp({ RATE_LIMIT_MAX: '0' })
  for (const path of ['/nowhere', '/users/1/friends', '/docs/nothing', '/graphql/x?y=/z', '/a//b']) {
    const { status, headers, body } = await ask(app.url + path, { headers: { accept: browser } })
    assert.deepEqual([status, headers.get('content-type')], [404, 'text/html; charset=utf-8'], path)
    assert.equal(headers.get('cache-control'), 'no-store')
    for (const [, address = ''] of body.matchAll(/<a href="([^"#]+)"/g))
      assert.match(
        new URL(address, `${app.url}/prefix${path}`).pathname,
        /^\/prefix\/(console|graphql|docs|docs\/api)?$/,
      )
    for (const accept of ['*/*', 'application/json', 'application/json, text/html;q=0.9'])
      assertRefusal(await ask(app.url + path, { headers: { accept } }), 404, 'Not found')
    assertRefusal(await ask(app.url + path), 404, 'Not found')
  }
  const headers = { accept: browser }
  assertRefusal(await ask(`${app.url}/users/99`, { headers }), 404, 'User not found') // a known address
  assertRefusal(await ask(`${app.url}${'/x'.repeat(1000)}`, { headers }), 404, 'Not found')
})
