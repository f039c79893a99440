import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Documents } from '../../src/graphql/language/documents.ts'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { startTestAppOn, type TestApp } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { assertRefused, dataOf, get, query, read, repeat } from '../support/graphql.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import type { Variables } from './support/operations.ts'

const schema = loadSchema()

function skippedBy(text: string, inputs: Variables): number {
  const operation = new Documents({ schema, maxDepth: 5, suggestions: false }).prepare(text).operation(undefined)
  return operation.cost(operation.coerce(inputs)).skipped
}

describe('The computed number of rows that an operation skips', () => {
  const sums: readonly (readonly [what: string, text: string, rows: number, variables?: Variables])[] = [
    ['its offset', '{ posts(offset: 7) { id } }', 7],
    ['nothing without an offset', '{ posts(limit: 1000) { comments { id } } }', 0],
    ['each list', '{ posts(offset: 7) { id } users(offset: 5) { id } }', 12],
    ['each alias', '{ a: posts(offset: 7) { id } b: posts(offset: 7) { id } }', 14],
    ['once for each item of the enclosing lists', '{ users(limit: 3) { posts(limit: 1, offset: 5) { id } } }', 15],
    ['ten times if the enclosing list has no limit', '{ users { posts(offset: 5) { id } } }', 50],
    [
      'rows at every level',
      '{ users(limit: 3, offset: 2) { posts(limit: 4) { comments(offset: 5) { id } } } }',
      2 + 3 * 4 * 5,
    ],
    [
      'lists inside objects',
      '{ posts(limit: 2) { author { posts(offset: 3) { id } } } post(id: 1) { comments(offset: 4) { id } } }',
      10,
    ],
    [
      'each place of a fragment',
      '{ a: user(id: 1) { ...F } users(limit: 2) { ...F } } fragment F on User { posts(offset: 3) { id } }',
      9,
    ],
    [
      'nothing for excluded fields',
      '{ posts(offset: 7) @skip(if: true) { id } ... @include(if: false) { users(offset: 8) { id } } __typename }',
      0,
    ],
    ['nothing for a list with limit 0', '{ posts(limit: 0, offset: 7) { comments(offset: 5) { id } } __typename }', 0],
    [
      'the values of variables',
      'query ($n: Int, $m: Int = 4, $no: Boolean!) { users(limit: $n) { posts(offset: $m) { id } } posts(offset: $m) @skip(if: $no) { id } }',
      12,
      { n: 3, no: true },
    ],
    [
      'the selection of a change',
      'mutation { a: likePost(id: 1) { comments(offset: 7) { id } } b: likePost(id: 1) { author { posts(offset: 5) { id } } } }',
      12,
    ],
  ]
  for (const [what, text, rows, variables = {}] of sums) {
    it(`counts ${what}`, () => {
      assert.equal(skippedBy(text, variables), rows)
    })
  }
})

describe('An operation that skips more than 100,000 rows', () => {
  let app: TestApp
  let ann: Awaited<ReturnType<typeof createMember>>
  before(async () => {
    app = await startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0' })
    ann = await createMember(app)
    await read(app, 'mutation { createPost(title: "T", content: "C") { id } }', ann)
  })
  after(() => app[Symbol.asyncDispose]())

  const message = (rows: number) => `The operation skips ${rows} rows; 100000 are allowed.`
  const extensions = (skipped: number) => ({ code: 'BAD_USER_INPUT', skipped, limit: 100_000 })
  const many = (count: number, offset: number) => repeat(count, n => `a${n}: posts(limit: 1, offset: ${offset}) { id }`)

  it('is refused before it is executed, by POST and by GET, and 100,000 are allowed', async () => {
    for (const ask of [(text: string) => query(app, text), (text: string) => get(app, { query: text })]) {
      dataOf(await ask(`{ ${many(1, 100_000)} }`))
      dataOf(await ask(`{ ${many(50, 2_000)} }`))
      dataOf(await ask('{ users(limit: 100) { posts(limit: 1, offset: 1000) { id } } }'))
      for (const [text, rows] of [
        [`{ ${many(51, 2_000)} }`, 102_000],
        [`{ ${many(50, 2_000)} users(offset: 1) { id } }`, 100_001],
        ['{ users(limit: 100) { posts(limit: 1, offset: 1001) { id } } }', 100_100],
      ] as const) {
        const refused = assertRefused(await ask(text), 400, 'BAD_USER_INPUT', message(rows))
        assert.deepEqual({ ...refused.extensions }, extensions(rows))
      }
    }
    assertRefused(await query(app, `{ ${many(70, 100_000)} }`), 400, 'BAD_USER_INPUT', message(7_000_000))
  })

  it('is refused because of its variables, at every request', async () => {
    const text = 'query ($n: Int!) { a: posts(offset: $n) { id } b: posts(offset: $n) { id } }'
    for (let round = 0; round < 2; round++) {
      dataOf(await query(app, text, { variables: { n: 50_000 } }))
      assertRefused(await query(app, text, { variables: { n: 50_001 } }), 400, 'BAD_USER_INPUT', message(100_002))
    }
  })

  it('is refused because of its cost first, and because of access last', async () => {
    const expensive = `{ ${many(2, 100_000)} posts(limit: 1000) { id } me { id } }`
    assertRefused(await query(app, expensive), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
    assertRefused(await query(app, `{ ${many(2, 100_000)} me { id } }`), 400, 'BAD_USER_INPUT', message(200_000))
    assertRefused(await query(app, `{ ${many(1, 100_000)} me { id } }`), 401, 'UNAUTHENTICATED')
  })

  it('changes nothing if it is a mutation', async () => {
    const like = (offset: number) =>
      `mutation { ${repeat(20, n => `a${n}: likePost(id: 1) { likes author { posts(offset: ${offset}) { id } } }`)} }`
    assertRefused(await query(app, like(5_001)), 400, 'BAD_USER_INPUT', message(100_020))
    assert.deepEqual(await read(app, '{ post(id: 1) { likes } }'), { post: { likes: 0 } })
    dataOf(await query(app, like(5_000)))
    assert.deepEqual(await read(app, '{ post(id: 1) { likes } }'), { post: { likes: 20 } })
  })

  it('is refused over a socket, as a query and as a subscription', async () => {
    using socket = await SocketClient.connect(app)
    const error = (rows: number) => [{ message: message(rows), extensions: extensions(rows) }]
    assert.deepEqual((await socket.ask(`{ ${many(2, 100_000)} }`)).errors, error(200_000))
    const subscription = (offset: number) =>
      `subscription { postAdded { id author { posts(limit: 50) { comments(offset: ${offset}) { id } } } } }`
    assert.deepEqual((await socket.ask(subscription(2_001))).errors, error(100_050))
    const begun = socket.begin(subscription(2_000))
    await begun.listening(async title => {
      const create = 'mutation ($title: String!) { createPost(title: $title, content: "C") { id } }'
      const asked = { variables: { title }, token: ann.token }
      return (await read<{ createPost: { id: string } }>(app, create, asked)).createPost.id
    })
  })
})
