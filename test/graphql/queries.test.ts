import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { assertRefused, dataOf, get, query, read, repeat } from '../support/graphql.ts'
import { bodyOf, createMember, createUser, type Member, send, type UserBody } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

interface Id {
  readonly id: string
}

/** Texts that are not valid ids, even if a database could convert them. */
const impossibleIds = [
  ...['abc', '', ' ', '0', '01', '-1', '+1', '1.0', '1e0', '0x1', ' 1', '1 ', '1 OR 1=1', "1'", '1;', '1\u0000'],
  ...['\u0661', '9007199254740992', '9007199254740993', '99999999999999999999', '9'.repeat(1000), 'null', 'undefined'],
]

describe('Queries', () => {
  const app = shared(() => startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0' }))
  let ann: Member
  let bob: Member
  let silent: UserBody

  // Posts 1 to 12 of Ann and 13 of Bob. On post 1, Bob has twelve comments and Ann one.
  before(async () => {
    ann = await createMember(app)
    bob = await createMember(app)
    silent = await createUser(app, { avatar: 'https://example.com/s.png' })
    await read(
      app,
      `mutation { ${repeat(12, n => `p${n}: createPost(title: "T${n + 1}", content: "C${n + 1}") { id }`)} }`,
      ann,
    )
    await read(app, 'mutation { createPost(title: "T13", content: "C13") { id } }', bob)
    await read(app, `mutation { ${repeat(12, n => `c${n}: addComment(postId: 1, text: "B${n + 1}") { id }`)} }`, bob)
    await read(app, 'mutation { addComment(postId: 1, text: "Thanks") { id } likePost(id: 2) { id } }', ann)
  })

  const ids = async (text: string, variables?: object) => {
    const [list = []] = Object.values(await read<Record<string, readonly Id[]>>(app, text, { variables }))
    return list.map(({ id }) => Number(id))
  }

  it('R-GQL-2, R-GQL-13: the data mirrors the selection, in its order, and holds nothing else', async () => {
    const text = '{ post(id: "2") { likes title } other: post(id: "1") { id __typename } __typename }'
    const shown = '{"post":{"likes":1,"title":"T2"},"other":{"id":"1","__typename":"Post"},"__typename":"Query"}'
    assert.equal((await query(app, text)).body, `{"data":${shown}}`)
  })

  it('R-GQL-5, R-GQL-7, R-GQL-8: every field of every type has its value', async () => {
    const { user, post } = await read<Record<string, Record<string, unknown>>>(
      app,
      `query ($user: ID!) {
          user(id: $user) { id name email avatar createdAt posts { id } }
          post(id: 1) { id title content likes publishedAt author { id name } comments(limit: 1) { id text author { id } } }
        }`,
      { variables: { user: silent.id } },
    )
    const { createdAt, ...account } = user ?? {}
    const { id, name, email, avatar } = silent
    assert.deepEqual(account, { id: String(id), name, email, avatar, posts: [] })
    const { publishedAt, ...written } = post ?? {}
    assert.deepEqual(written, {
      id: '1',
      title: 'T1',
      content: 'C1',
      likes: 0,
      author: { id: String(ann.id), name: ann.name },
      comments: [{ id: '1', text: 'B1', author: { id: String(bob.id) } }],
    })
    for (const instant of [createdAt, publishedAt]) assertInstant(instant)
  })

  it('R-GQL-3, R-GQL-15: variables are sent separately from the document, are optional, and can be used in arguments', async () => {
    const text = 'query One($id: ID!, $max: Int) { post(id: $id) { id } posts(limit: $max) { id } }'
    const expected = { post: { id: '3' }, posts: [{ id: '13' }] }
    assert.deepEqual(await read(app, text, { variables: { id: '3', max: 1 } }), expected)
    assert.deepEqual(await read(app, text, { variables: { id: 3, max: 1, unknown: 'ignored' } }), expected)
    assert.deepEqual(dataOf(await get(app, { query: text, variables: '{"id":"3","max":1}' })), expected)
    for (const variables of [undefined, null, {}]) {
      assert.deepEqual(await read(app, '{ post(id: 1) { id } }', { variables }), { post: { id: '1' } })
    }
  })

  it('R-GQL-16: a default applies if no value is sent, and not if any value is sent, including null', async () => {
    const text = 'query ($max: Int = 2) { posts(limit: $max) { id } }'
    assert.equal((await ids(text)).length, 2)
    assert.equal((await ids(text, { max: 3 })).length, 3)
    assert.equal((await ids(text, { max: 0 })).length, 0)
    assert.equal((await ids(text, { max: null })).length, 10)
  })

  it('R-GQL-17: a fragment is reusable, named or inline, on any type, within others', async () => {
    const text = `
        { a: post(id: 1) { ...Told } b: post(id: 13) { ...Told ... on Post { id } ... { likes } } ...Root }
        fragment Told on Post { title author { ...Who } }
        fragment Who on User { name }
        fragment Root on Query { user(id: ${bob.id}) { ...Who } }`
    assert.deepEqual(await read(app, text), {
      a: { title: 'T1', author: { name: ann.name } },
      b: { title: 'T13', author: { name: bob.name }, id: '13', likes: 0 },
      user: { name: bob.name },
    })
  })

  it('R-GQL-18, R-GQL-19: with both directives a field is included only if both allow it', async () => {
    const text = 'query ($in: Boolean!, $out: Boolean!) { __typename @include(if: $in) @skip(if: $out) }'
    for (const included of [true, false])
      for (const skipped of [true, false]) {
        const answer = await read(app, text, { variables: { in: included, out: skipped } })
        assert.deepEqual(answer, included && !skipped ? { __typename: 'Query' } : {})
      }
    const empty = '{ post(id: 1) { id @skip(if: true) } posts(limit: 2) { id @include(if: false) } }'
    assert.deepEqual(await read(app, empty), { post: {}, posts: [{}, {}] })
  })

  it('R-GQL-9: a list without items is an empty list, never null', async () => {
    const lists = 'posts(offset: 100) { id } none: posts(limit: 0) { id } users(offset: 99900) { id }'
    const text = `{ user(id: ${silent.id}) { posts { id } } post(id: 2) { comments { id } } ${lists} }`
    const expected = { user: { posts: [] }, post: { comments: [] }, posts: [], none: [], users: [] }
    assert.deepEqual(await read(app, text), expected)
  })

  it('R-GQL-21, R-GQL-22: user and post return the entity with that id, as text or number, or null if there is none', async () => {
    assert.deepEqual(await read(app, `{ user(id: "${ann.id}") { name } post(id: 13) { title } }`), {
      user: { name: ann.name },
      post: { title: 'T13' },
    })
    const text = 'query ($id: ID!) { user(id: $id) { id posts { id } } post(id: $id) { id author { id } } }'
    const absent = { user: null, post: null }
    assert.deepEqual(await read(app, text, { variables: { id: 123456789 } }), absent)
    assert.deepEqual(await read(app, text, { variables: { id: Number.MAX_SAFE_INTEGER } }), absent)
    for (const id of impossibleIds) assert.deepEqual(await read(app, text, { variables: { id } }), absent, id)
    assert.deepEqual(await read(app, '{ post(id: 9007199254740993) { id } }'), { post: null })
  })

  it('R-GQL-23: posts returns the newest first, by default ten, starting at the offset', async () => {
    const newest = [13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert.deepEqual(await ids('{ posts { id } }'), newest.slice(0, 10))
    assert.deepEqual(await ids('{ posts(limit: null, offset: null) { id } }'), newest.slice(0, 10))
    assert.deepEqual(await ids('{ posts(limit: 1000) { id } }'), newest)
    assert.deepEqual(await ids('{ posts(limit: 3, offset: 2) { id } }'), [11, 10, 9])
    assert.deepEqual(await ids('{ posts(offset: 11) { id } }'), [2, 1])
  })

  it('R-GQL-25: users returns all users sorted by id, the same as the HTTP interface', async () => {
    const all = bodyOf<readonly UserBody[]>(await send(app, 'GET /users'))
    const { users } = await read<{ users: readonly (Id & { name: string; email: string })[] }>(
      app,
      '{ users { id name email } }',
    )
    assert.deepEqual(
      users.map(({ id, ...more }) => ({ id: Number(id), ...more })),
      all.map(({ id, name, email }) => ({ id, name, email })),
    )
    assert.deepEqual(await ids('{ users(limit: 1, offset: 1) { id } }'), [bob.id])
  })

  it('R-GQL-24: me is the user of the token, for every token', async () => {
    for (const { id, name, token } of [ann, bob]) {
      assert.deepEqual(await read(app, '{ me { id name } }', { token }), { me: { id: String(id), name } })
    }
    for (const text of ['{ me { id } }', '{ posts { id } ...F } fragment F on Query { a: me { __typename } }'])
      assertRefused(await query(app, text), 401, 'UNAUTHENTICATED', 'Authentication required')
  })

  it('limit accepts 0 to 1000 and offset 0 to 100,000, on every list, as a literal, a variable or its default', async () => {
    const lists = ['posts(ARG)', 'users(ARG)', 'user(id: 1) { posts(ARG)', 'post(id: 1) { comments(ARG)']
    for (const list of lists) {
      const text = (args: string) => `{ ${list.replace('ARG', args)} { __typename } }${list.includes('{') ? ' }' : ''}`
      for (const [name, most] of [
        ['limit', 1000],
        ['offset', 100_000],
      ] as const) {
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
})

function assertInstant(value: unknown): void {
  assert.match(String(value), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.equal(new Date(String(value)).toISOString(), value)
}
