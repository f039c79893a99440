import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, test } from 'node:test'
import { serverAudits } from 'graphql-http'
import { preferredType } from '../../src/http/accept.ts'
import { execute } from '../faults/execute.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { assertRefused, dataOf, get, postText, query, read } from '../support/graphql.ts'
import { ask } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { createMember } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { impatient, waitUntil, within } from '../support/wait.ts'
import { startWithPost } from './support/app.ts'

const json = 'application/json'
const modern = 'application/graphql-response+json'
const page = 'text/html'

describe('GraphQL over HTTP', () => {
  const app = shared(startWithPost)

  const likes = async () => (await read<{ post: { likes: number } }>(app, '{ post(id: 1) { likes } }')).post.likes

  const malformed: Readonly<Record<string, RegExp>> = {
    '': /must be a JSON object/,
    null: /must be a JSON object/,
    '"{ __typename }"': /must be a JSON object/,
    '[{"query":"{ __typename }"}]': /must be a JSON object/, // there is no batching
    '{}': /^query must be a string/,
    '{"query":null}': /^query must be a string/,
    '{"Query":"{ __typename }"}': /^query must be a string/,
    '{"query":"{ __typename }","variables":"x"}': /^variables must be an object/,
    '{"query":"{ __typename }","variables":[]}': /^variables must be an object/,
    '{"query":"{ __typename }","operationName":1}': /^operationName must be a string/,
    '{"query":"{ __typename }","extensions":1}': /^extensions must be an object/,
    '{ __typename }': /not valid JSON/,
  }

  it('the audits of GraphQL over HTTP find no error, and no warnings except about three statuses', async () => {
    const fetchFn = (url: string, init?: RequestInit) => within(fetch(url, init), `an answer from ${url}`)
    const results = await Promise.all(serverAudits({ url: `${app.url}/graphql`, fetchFn }).map(({ fn }) => fn()))
    assert.ok(results.length >= 61, `${results.length} audits`)
    const amiss = results.filter(({ status }) => status !== 'ok')
    // They expect 200 with application/json for parse, validation and variable errors; the service never does that.
    assert.deepEqual(amiss.map(({ id, status }) => `${status} ${id}`).sort(), ['warn 572B', 'warn 7B9B', 'warn FDE2'])
  })

  it('a malformed request is refused with 400 and an error that says what is wrong', async () => {
    for (const [body, text] of Object.entries(malformed))
      assertRefused(await postText(app, body), 400, 'BAD_REQUEST', text)
  })

  it('operationName selects an operation, and is required if there are several', async () => {
    const text = 'query One { a: __typename } query Two { b: __typename } mutation Three { c: __typename }'
    assert.deepEqual(await read(app, text, { operationName: 'Two' }), { b: 'Query' })
    assert.deepEqual(await read(app, text, { operationName: 'Three' }), { c: 'Mutation' })
    assert.deepEqual(dataOf(await get(app, { query: text, operationName: 'One' })), { a: 'Query' })
    for (const operationName of [undefined, null, '']) {
      const refusal = await query(app, text, { operationName })
      assertRefused(refusal, 400, 'OPERATION_RESOLUTION_FAILURE', /several operations/)
    }
    for (const operationName of ['Four', 'one', 'constructor', '__proto__'])
      for (const named of [text, '{ __typename }'])
        assertRefused(await query(app, named, { operationName }), 400, 'OPERATION_RESOLUTION_FAILURE')
    for (const operationName of [undefined, null, '', 'One'])
      assert.deepEqual(await read(app, 'query One { __typename }', { operationName }), { __typename: 'Query' })
  })

  it('GET executes queries: variables and extensions are JSON in the query string', async () => {
    const text = 'query ($id: ID!) { post(id: $id) { title } }'
    const found = { post: { title: 'T' } }
    assert.deepEqual(dataOf(await get(app, { query: text, variables: '{"id":"1"}' })), found)
    assert.deepEqual(dataOf(await get(app, { query: text, variables: '{"id":1}', extensions: '{"a":1}' })), found)
    for (const more of [{}, { variables: 'null' }, { variables: '{}' }, { extensions: 'null' }, { unknown: 'x' }]) {
      assert.deepEqual(dataOf(await get(app, { query: '{ __typename }', ...more })), { __typename: 'Query' })
    }
    const wrong: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
      [{}, /^query must be a string/],
      [{ query: text, variables: '{' }, /^variables is not valid JSON/],
      [{ query: text, variables: '' }, /^variables is not valid JSON/],
      [{ query: text, variables: '"{}"' }, /^variables must be an object/],
      [{ query: text, variables: '[]' }, /^variables must be an object/],
      [{ query: text, extensions: '[' }, /^extensions is not valid JSON/],
      [{ query: text, extensions: '1' }, /^extensions must be an object/],
    ]
    for (const [parameters, message] of wrong) assertRefused(await get(app, parameters), 400, 'BAD_REQUEST', message)
    for (const more of ['query={__typename}', 'operationName=a&operationName=b'])
      assertRefused(await ask(`${app.url}/graphql?query={__typename}&${more}`), 400, 'BAD_REQUEST')
    assert.deepEqual(dataOf(await get(app, { query: '{ me { id } }' }, app.ann)), { me: { id: String(app.ann.id) } })
  })

  it('GET changes nothing: a mutation is refused with 405 and Allow', async () => {
    const before = await likes()
    const text = 'mutation { likePost(id: 1) { id } }'
    const refusal = await get(app, { query: text })
    assertRefused(refusal, 405, 'BAD_REQUEST', 'A mutation must be sent by POST.')
    assert.equal(refusal.headers.get('allow'), 'POST')
    const two = `query One { __typename } ${text.replace(' ', ' Two ')}`
    assertRefused(await get(app, { query: two, operationName: 'Two' }), 405, 'BAD_REQUEST')
    const head = await ask(`${app.url}/graphql?query=${encodeURIComponent(text)}`, { method: 'HEAD' })
    assert.equal(head.status, 405)
    assert.equal(await likes(), before)
  })

  it('other methods are refused with 405 and Allow', async () => {
    for (const method of ['PUT', 'PATCH', 'DELETE', 'QUERY']) {
      const response = await ask(`${app.url}/graphql`, { method })
      assertRefusal(response, 405, 'Method not allowed')
      assert.deepEqual(response.headers.get('allow')?.split(', ').sort(), ['GET', 'HEAD', 'OPTIONS', 'POST'])
    }
  })

  it('R-GQL-4: a subscription by POST or GET is refused with 400', async () => {
    const text = 'subscription ($id: ID!) { commentAdded(postId: $id) { id } }'
    for (const response of [await query(app, text), await get(app, { query: text })])
      assertRefused(response, 400, 'BAD_REQUEST', 'Subscriptions run over WebSocket.')
  })

  const accepted = { '*/*': json, [modern]: modern, [`${json};q=0.5, ${modern}`]: modern, 'image/png': json }

  it('the answer has the type that Accept prefers, for data and for errors', async () => {
    for (const [accept, type] of Object.entries(accepted)) {
      const answers = [
        await query(app, '{ __typename }', { accept }),
        await query(app, '{ posts { comments { id } } }', { accept }),
        await query(app, '{', { accept }),
        await query(app, '{ me { id } }', { accept }),
        await query(app, '{ __typename }', { accept, token: 'bad' }),
        await postText(app, '{', { accept }),
        await get(app, { query: '{ __typename }' }, { accept }),
        await get(app, { query: 'mutation { __typename }' }, { accept }),
      ]
      const statuses = answers.map(({ status }) => status)
      assert.deepEqual(statuses, [200, 200, 400, 401, 401, 400, 200, 405])
      for (const { headers } of answers) assert.equal(headers.get('content-type'), `${type}; charset=utf-8`)
    }
  })

  it('parse, validation and variable errors are 400, with their code and their locations', async () => {
    const cut = assertRefused(await query(app, '{ posts { id '), 400, 'GRAPHQL_PARSE_FAILED', /^Syntax Error/)
    assert.deepEqual(cut.locations, [{ line: 1, column: 14 }])
    const invalid = await query(app, '{ posts { nothing } }')
    const { locations } = assertRefused(invalid, 400, 'GRAPHQL_VALIDATION_FAILED', /^Cannot query field "nothing"/)
    assert.deepEqual(locations, [{ line: 1, column: 11 }])
    const text = 'query ($max: Int!) { posts(limit: $max) { id } }'
    for (const max of [undefined, null, 'x', 1.5, [], {}, true])
      assertRefused(await query(app, text, { variables: { max } }), 400, 'BAD_USER_INPUT', /^Variable "\$max"/)
  })

  it('a document without an item where the grammar needs one is refused each time', async () => {
    const inside = ['{ me {} }', '{ ... on Query {} }', '{ posts() { id } }']
    for (const text of ['', '# nothing', '{}', 'mutation M {}', ...inside, '{ posts { ...F } } fragment F on Post {}'])
      for (let time = 0; time < 2; time++) assertRefused(await query(app, text), 400, 'GRAPHQL_PARSE_FAILED')
  })

  it('errors suggest existing names for unknown ones, but not in production, nor without introspection', async () => {
    await using production = await startTestApp({ NODE_ENV: 'production', INTROSPECTION: 'on' })
    await using closed = await startTestApp({ INTROSPECTION: 'off' })
    const texts = ['{ post(id: 1) { titel } }', '{ post(idd: 1) { id } }', '{ post(id: 1) { ... on Pos { id } } }']
    for (const text of texts) {
      assertRefused(await query(app, text), 400, 'GRAPHQL_VALIDATION_FAILED', / Did you mean "/)
      for (const refusal of [await query(production, text), await query(closed, text)]) {
        assertRefused(refusal, 400, 'GRAPHQL_VALIDATION_FAILED')
        assert.doesNotMatch(refusal.body, /did you mean/i)
      }
    }
  })

  it('an invalid token is refused with 401 before anything else, for every operation', async () => {
    const mutation = 'mutation { likePost(id: 1) { id } }'
    for (const text of ['{ __typename }', '{', mutation, '{ nothing }', 'subscription { postAdded { id } }']) {
      const refusal = await query(app, text, { token: 'bad.bad.bad' })
      assertRefused(refusal, 401, 'UNAUTHENTICATED', 'Invalid or expired token')
      assert.match(refusal.headers.get('www-authenticate') ?? '', /^Bearer error="invalid_token"/)
      assertRefused(await get(app, { query: text }, { token: 'bad.bad.bad' }), 401, 'UNAUTHENTICATED')
    }
    const missing = await query(app, '{ me { id } }')
    assert.equal(missing.headers.get('www-authenticate'), 'Bearer')
  })
})

test('while SQLite cannot be written, mutations get 503 with errors and no data, and queries get 200', async () => {
  await using app = await startTestAppOn(sqlite, impatient)
  const { token } = await createMember(app)
  const create = 'mutation { createPost(title: "T", content: "C") { likes } }'
  await read(app, create, { token })
  const other = new DatabaseSync(app.database.location)
  other.exec('begin immediate')
  const refusal = await query(app, 'mutation { likePost(id: 1) { id } }')
  assertRefused(refusal, 503, 'SERVICE_UNAVAILABLE', 'Service temporarily unavailable. Try again later.')
  assert.equal(refusal.headers.get('retry-after'), '1')
  assert.deepEqual(await read(app, '{ post(id: 1) { likes } }'), { post: { likes: 0 } })
  other.exec('rollback')
  other.close()
  await waitUntil(async () => (await query(app, create, { token })).body === '{"data":{"createPost":{"likes":0}}}')
})

test('an internal error is answered 500 with errors, without data and without its details', async () => {
  await using app = await startTestAppOn(sqlite)
  const { token } = await createMember(app)
  await read(app, 'mutation { createPost(title: "T", content: "C") { id } }', { token })
  await execute(app.database, 'drop table comments')
  const body = '{"errors":[{"message":"Internal server error","extensions":{"code":"INTERNAL_SERVER_ERROR"}}]}'
  for (const text of ['mutation { addComment(postId: 1, text: "secret") { id } }', '{ posts { comments { id } } }']) {
    const { length } = app.logs
    const response = await query(app, text, { token })
    assertRefused(response, 500, 'INTERNAL_SERVER_ERROR')
    assert.equal(response.body, body)
    assert.doesNotMatch(JSON.stringify([...response.headers]), /comments|select|stack/i)
    const found = () => app.logs.slice(length).find(({ level }) => level === 50)
    await waitUntil(() => found() !== undefined) // lines of other threads arrive a little later
    const line = found()
    assert.equal(line?.requestId, response.headers.get('x-request-id'))
    assert.match(JSON.stringify(line), /no such table: comments\\n +at /, 'the log contains the cause and its place')
  }
  assert.deepEqual(await read(app, '{ posts { title } }'), { posts: [{ title: 'T' }] })
})

/** What is preferred of JSON, the newer type of GraphQL and a page. */
const preferences: readonly (readonly [accept: string | undefined, preferred: string | undefined])[] = [
  [undefined, json],
  ['*/*', json],
  ['application/*', json],
  ['text/*', page],
  [`${modern}, ${json}`, json],
  [`${modern}, ${json};q=0.9`, modern],
  [`${json}; q=0.1 , ${modern} ; Q=0.2`, modern],
  [`${json};charset=utf-8;q=0.5, ${modern};charset=utf-8`, modern],
  [json.toUpperCase(), json],
  [`*/*, ${json};q=0`, modern],
  [`*/*;q=0.1, ${page}`, page],
  [`application/*;q=0.2, ${modern};q=0.1`, json],
  // The headers that browsers send for a page, and for a request of a script.
  ['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8', page],
  ['*/*,text/html', page],
  [`${modern}, */*`, modern],
  [`${page}, ${json}`, json],
  [`${page}, application/*`, page],
  [`${page};q=0.9, */*`, json],
  ['application/json, text/plain, */*', json],
  ['image/png', undefined],
  [`${json};q=0`, undefined],
  [`${json};q=nonsense`, undefined],
  ['', undefined],
  [';;;', undefined],
]

test('an Accept header prefers the type of the greatest quality, among equals the first of ours, or nothing', () => {
  for (const [accept, preferred] of preferences)
    assert.equal(preferredType(accept, [json, modern, page]), preferred, accept)
})

test('an Accept header of more than 2,048 characters counts as none', () => {
  const longest = `${page}${' '.repeat(2048 - page.length)}`
  assert.equal(preferredType(longest, [json, page]), page)
  assert.equal(preferredType(`${longest} `, [json, page]), json)
})
