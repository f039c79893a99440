import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { assertRefused, dataOf, get, query, read } from '../support/graphql.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'
import { startWithPost } from './support/app.ts'

/** Texts that are not valid ids, even if a database could convert them. */
const impossibleIds = [
  ...['abc', '', ' ', '0', '01', '-1', '+1', '1.0', '1e0', '0x1', ' 1', '1 ', '1 OR 1=1', "1'", '1;', '1\u0000'],
  ...['\u0661', '9007199254740992', '9007199254740993', '99999999999999999999', '9'.repeat(1000), 'null', 'undefined'],
]

// What a valid query returns is compared with graphql-js in oracle.test.ts.
describe('Arguments of queries', () => {
  const app = shared(startWithPost)
  before(() => read(app, 'mutation { addComment(postId: 1, text: "x") { id } }', app.ann))

  it('R-GQL-21, R-GQL-22: user and post return the entity with that id, as text or number, or null if there is none', async () => {
    const text = 'query ($id: ID!) { user(id: $id) { id posts { id } } post(id: $id) { id author { id } } }'
    const found = { user: { id: '1', posts: [{ id: '1' }] }, post: { id: '1', author: { id: '1' } } }
    for (const id of ['1', 1]) assert.deepEqual(await read(app, text, { variables: { id } }), found)
    const absent = { user: null, post: null }
    for (const id of [123456789, Number.MAX_SAFE_INTEGER, ...impossibleIds])
      assert.deepEqual(await read(app, text, { variables: { id } }), absent, String(id))
    assert.deepEqual(await read(app, '{ post(id: 9007199254740993) { id } }'), { post: null })
  })

  it('limit accepts 0 to 1000 and offset 0 to 100,000, on every list, as a literal, a variable or its default', async () => {
    const lists = ['posts(ARG)', 'users(ARG)', 'user(id: 1) { posts(ARG)', 'post(id: 1) { comments(ARG)']
    for (const list of lists) {
      const text = (args: string) => `{ ${list.replace('ARG', args)} { __typename } }${list.includes('{') ? ' }' : ''}`
      for (const [name, most] of Object.entries({ limit: 1000, offset: 100_000 })) {
        /** The answers to a value as a literal, as a default and as a variable. */
        const answers = async (value: unknown) => {
          const literal = JSON.stringify(value)
          return [
            await query(app, text(`${name}: ${literal}`)),
            await query(app, `query ($n: Int = ${literal}) ${text(`${name}: $n`)}`),
            await query(app, `query ($n: Int) ${text(`${name}: $n`)}`, { variables: { n: value } }),
          ] as const
        }
        for (const value of [-1, most + 1])
          for (const answer of await answers(value))
            assertRefused(answer, 400, 'BAD_USER_INPUT', `${name} must be an integer from 0 to ${most}`)
        // The schema itself refuses values outside of the range of Int.
        for (const value of list === lists[0] ? [2147483648, -2147483649, 1.5, '1', true] : []) {
          const [literal, byDefault, variable] = await answers(value)
          for (const answer of [literal, byDefault])
            assertRefused(answer, 400, 'GRAPHQL_VALIDATION_FAILED', /^Int cannot represent/)
          assertRefused(variable, 400, 'BAD_USER_INPUT', /^Variable "\$n" has invalid value: Int cannot represent/)
        }
        for (const value of [0, name === 'limit' ? 900 : most, null])
          for (const answer of await answers(value)) dataOf(answer)
      }
    }
    dataOf(await query(app, '{ posts(limit: 1000) { id } }'))
  })

  it('after is refused if it cannot name a row, before the operation is executed', async () => {
    for (const id of ['abc', '', '0', '01', '-1', '1.5', '9007199254740992', '1 or 1 = 1'])
      for (const text of [
        'query ($id: ID) { posts(after: $id) { id } }',
        'query ($id: ID) { user(id: 999) { posts(limit: 0, after: $id) { id } } }',
        'query ($id: ID) { posts { comments(after: $id) { id } } }',
        'query ($id: ID) { users(after: $id) { email } me { id } }',
        'mutation ($id: ID) { likePost(id: 1) { comments(after: $id) { id } } }',
      ])
        assertRefused(await query(app, text, { variables: { id } }), 400, 'BAD_USER_INPUT', 'after must be an id')
    assert.deepEqual(await read(app, '{ post(id: 1) { likes } }'), { post: { likes: 0 } })
  })

  it('after is refused together with another argument that sets the start of the list', async () => {
    for (const [field, other] of [
      ['posts(after: 3, offset: 0)', 'offset'],
      ['posts(after: 3, publishedAfter: "2026-01-31T12:00:00Z")', 'publishedAfter'],
      ['posts(publishedBefore: "2026-01-31T12:00:00Z", after: 3)', 'publishedBefore'],
      ['users(after: 3, offset: 1)', 'offset'],
    ] as const) {
      const message = `after cannot be combined with ${other}`
      assertRefused(await query(app, `{ ${field} { id } }`), 400, 'BAD_USER_INPUT', message)
      assertRefused(await get(app, { query: `{ ${field} { id } }` }), 400, 'BAD_USER_INPUT', message)
    }
    using socket = await SocketClient.connect(app)
    const subscription = 'subscription { postAdded { comments(after: 1, offset: 1) { id } } }'
    assert.deepEqual((await socket.ask(subscription)).errors?.[0]?.extensions, { code: 'BAD_USER_INPUT' })
  })
})
