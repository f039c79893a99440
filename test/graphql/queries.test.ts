import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { catalogue } from '../../src/storage/verbs.ts'
import { execute } from '../faults/execute.ts'
import { startTestAppOn, type TestApp } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefused, dataOf, get, query, read, repeat, rowsOf } from '../support/graphql.ts'
import { bodyOf, createMember, createUser, send, type UserBody } from '../support/rest.ts'

interface Id {
  readonly id: string
}

/** Texts that are not valid ids, even if a database could convert them. */
const impossibleIds = [
  ...[
    'abc',
    '',
    ' ',
    '0',
    '01',
    '-1',
    '+1',
    '1.0',
    '1e0',
    '0x1',
    ' 1',
    '1 ',
    '1 OR 1=1',
    "1'",
    '1;',
    '1\u0000',
    '\u0661',
  ],
  ...['9007199254740992', '9007199254740993', '99999999999999999999', '9'.repeat(1000), 'null', 'undefined'],
]

for (const kind of engineKinds) {
  describe(`Queries on ${kind.name}`, { skip: kind.skip }, () => {
    let app: TestApp
    let ann: UserBody & { readonly token: string }
    let bob: UserBody & { readonly token: string }
    let silent: UserBody

    // Posts 1 to 12 of Ann and 13 of Bob. On post 1, Bob has twelve comments and Ann one.
    before(async () => {
      app = await startTestAppOn(kind, { RATE_LIMIT_MAX: '0' })
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
    after(() => app[Symbol.asyncDispose]())

    const ids = async (text: string, variables?: object) => {
      const [list = []] = Object.values(await read<Record<string, readonly Id[]>>(app, text, { variables }))
      return list.map(({ id }) => Number(id))
    }

    it('R-GQL-2, R-GQL-13: the data mirrors the selection, in its order, and holds nothing else', async () => {
      const { body } = await query(
        app,
        '{ post(id: "2") { likes title } other: post(id: "1") { id __typename } __typename }',
      )
      const expected =
        '{"data":{"post":{"likes":1,"title":"T2"},"other":{"id":"1","__typename":"Post"},"__typename":"Query"}}'
      assert.equal(body, expected)
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

    it('R-GQL-10: a DateTime is written as ISO-8601 with milliseconds and Z, and one that is not set is null', async () => {
      const { id } = await read<{ createPost: Id }>(app, draft, ann).then(({ createPost }) => createPost)
      await execute(app.database, `update posts set published_at = null where id = ${id}`)
      assert.deepEqual(await read(app, `{ post(id: ${id}) { publishedAt } }`), { post: { publishedAt: null } })
      assert.deepEqual(await read(app, `{ user(id: ${ann.id}) { avatar } }`), { user: { avatar: null } })
      const { posts } = await read<{ posts: readonly { publishedAt: unknown }[] }>(
        app,
        '{ posts(offset: 1) { publishedAt } }',
      )
      for (const { publishedAt } of posts) assertInstant(publishedAt)
      await read(app, `mutation { deletePost(id: ${id}) }`, ann)
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

    it('fields with the same key are merged, also across fragments', async () => {
      const text = `{ post(id: 1) { id author { id } } ...More ... on Query { post(id: 1) { author { id posts(limit: 1) { id } } } } }
        fragment More on Query { post(id: 1) { title author { name } } }`
      assert.deepEqual(await read(app, text), {
        post: { id: '1', author: { id: String(ann.id), name: ann.name, posts: [{ id: '12' }] }, title: 'T1' },
      })
    })

    for (const [rule, directive, showing] of [
      ['R-GQL-18', 'include', true],
      ['R-GQL-19', 'skip', false],
    ] as const) {
      it(`${rule}: @${directive} decides about fields and fragments, by a literal, a variable or its default`, async () => {
        const text = (header: string, condition: string) => `query ${header} {
            post(id: 1) {
              id
              title @${directive}(if: ${condition})
              ...Likes @${directive}(if: ${condition})
              ... @${directive}(if: ${condition}) { content }
              author { id name @${directive}(if: ${condition}) }
            }
          }
          fragment Likes on Post { likes }`
        const author = { id: String(ann.id) }
        const shown = { id: '1', title: 'T1', likes: 0, content: 'C1', author: { ...author, name: ann.name } }
        for (const value of [true, false]) {
          const expected = { post: value === showing ? shown : { id: '1', author } }
          assert.deepEqual(await read(app, text('', String(value))), expected)
          assert.deepEqual(await read(app, text(`($if: Boolean = ${value})`, '$if')), expected)
          const asked = { variables: { if: value } }
          assert.deepEqual(await read(app, text('($if: Boolean!)', '$if'), asked), expected)
          assert.deepEqual(await read(app, text(`($if: Boolean = ${!value})`, '$if'), asked), expected)
        }
      })
    }

    it('R-GQL-18, R-GQL-19: with both directives a field is included only if both allow it', async () => {
      const text = 'query ($in: Boolean!, $out: Boolean!) { __typename @include(if: $in) @skip(if: $out) }'
      for (const variables of [true, false].flatMap(value => [
        { in: true, out: value },
        { in: false, out: value },
      ])) {
        const shown = variables.in && !variables.out
        assert.deepEqual(await read(app, text, { variables }), shown ? { __typename: 'Query' } : {})
      }
      assert.deepEqual(
        await read(app, '{ post(id: 1) { id @skip(if: true) } posts(limit: 2) { id @include(if: false) } }'),
        {
          post: {},
          posts: [{}, {}],
        },
      )
    })

    it('R-GQL-14: relations nest as deep as the limits allow, in one response', async () => {
      const text = `{ user(id: ${bob.id}) { posts(limit: 1) { author { posts(limit: 1) { author { name } } } } } }`
      const { name } = bob
      assert.deepEqual(await read(app, text), { user: { posts: [{ author: { posts: [{ author: { name } }] } }] } })
      const other =
        '{ post(id: 1) { comments(limit: 2, offset: 11) { text author { name posts(limit: 1) { title } } } } }'
      const ofBob = { name, posts: [{ title: 'T13' }] }
      const ofAnn = { name: ann.name, posts: [{ title: 'T12' }] }
      assert.deepEqual(await read(app, other), {
        post: {
          comments: [
            { text: 'B12', author: ofBob },
            { text: 'Thanks', author: ofAnn },
          ],
        },
      })
    })

    it('R-GQL-9: a list without items is an empty list, never null', async () => {
      const text = `{ user(id: ${silent.id}) { posts { id } } post(id: 2) { comments { id } } posts(offset: 100) { id } none: posts(limit: 0) { id } users(offset: 99900) { id } }`
      assert.deepEqual(await read(app, text), {
        user: { posts: [] },
        post: { comments: [] },
        posts: [],
        none: [],
        users: [],
      })
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

    it('R-GQL-6: the posts of a user come newest first, by default ten, with limit and offset', async () => {
      const of = async (args: string) => {
        const { user } = await read<{ user: { posts: readonly Id[] } }>(
          app,
          `{ user(id: ${ann.id}) { posts${args} { id } } }`,
        )
        return user.posts.map(({ id }) => Number(id))
      }
      assert.deepEqual(await of(''), [12, 11, 10, 9, 8, 7, 6, 5, 4, 3])
      assert.deepEqual(await of('(limit: 2)'), [12, 11])
      assert.deepEqual(await of('(limit: 5, offset: 9)'), [3, 2, 1])
    })

    it('comments of a post come oldest first, by default ten', async () => {
      const of = async (args: string) => {
        const { post } = await read<{ post: { comments: readonly { text: string }[] } }>(
          app,
          `{ post(id: 1) { comments${args} { text } } }`,
        )
        return post.comments.map(({ text }) => text)
      }
      const all = [...Array.from({ length: 12 }, (_, index) => `B${index + 1}`), 'Thanks']
      assert.deepEqual(await of(''), all.slice(0, 10))
      assert.deepEqual(await of('(limit: 3)'), all.slice(0, 3))
      assert.deepEqual(await of('(limit: 20, offset: 11)'), all.slice(11))
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
      assertRefused(await query(app, '{ me { id } }'), 401, 'UNAUTHENTICATED', 'Authentication required')
    })

    it('limit accepts 0 to 1000 and offset 0 to 100,000, on every list, as a literal, a variable or its default', async () => {
      const lists = [
        '{ posts(ARG) { __typename } }',
        '{ users(ARG) { __typename } }',
        `{ user(id: 1) { posts(ARG) { __typename } } }`,
        '{ post(id: 1) { comments(ARG) { __typename } } }',
      ]
      const beyond = { limit: [-1, 1001, 2147483647, -2147483648], offset: [-1, 100_001, 2147483647, -2147483648] }
      for (const list of lists) {
        const by = (text: string, header = '') => query(app, header + list.replace('ARG', text))
        for (const [name, values] of Object.entries(beyond)) {
          const message =
            name === 'limit' ? 'limit must be an integer from 0 to 1000' : 'offset must be an integer from 0 to 100000'
          for (const value of values) {
            assertRefused(await by(`${name}: ${value}`), 400, 'BAD_USER_INPUT', message)
            assertRefused(await by(`${name}: $n`, `query ($n: Int = ${value}) `), 400, 'BAD_USER_INPUT', message)
            const asked = await query(app, `query ($n: Int) ${list.replace('ARG', `${name}: $n`)}`, {
              variables: { n: value },
            })
            assertRefused(asked, 400, 'BAD_USER_INPUT', message)
          }
          // The schema itself refuses values outside of the range of Int.
          for (const value of [2147483648, -2147483649, 1.5, '1', true]) {
            const asked = await query(app, `query ($n: Int) ${list.replace('ARG', `${name}: $n`)}`, {
              variables: { n: value },
            })
            assertRefused(asked, 400, 'BAD_USER_INPUT', /^Variable "\$n" has invalid value: Int cannot represent/)
            assertRefused(
              await by(`${name}: ${JSON.stringify(value)}`),
              400,
              'GRAPHQL_VALIDATION_FAILED',
              /^Int cannot represent/,
            )
            const byDefault = await by(`${name}: $n`, `query ($n: Int = ${JSON.stringify(value)}) `)
            assertRefused(byDefault, 400, 'GRAPHQL_VALIDATION_FAILED', /^Int cannot represent/)
          }
        }
        for (const fine of [
          'limit: 0',
          'limit: 900',
          'offset: 0',
          'offset: 100000',
          'limit: 0, offset: 100000',
          'limit: null',
        ])
          dataOf(await by(fine))
      }
      dataOf(await query(app, '{ posts(limit: 1000) { id } }'))
    })

    describe('of posts whose publication order differs from their id order', () => {
      const at = (minute: number) => `2020-01-01T00:0${minute}:00.000Z`
      // 3 and 5 are published at the same instant, 4 before them, 6 never.
      const moments: readonly (readonly [id: number, minute: number])[] = [
        [3, 2],
        [4, 1],
        [5, 2],
        [7, 4],
        [8, 3],
      ]
      before(async () => {
        const changes = moments.map(
          ([id, minute]) => `update posts set published_at = '${at(minute)}' where id = ${id};`,
        )
        await execute(app.database, `${changes.join('')} update posts set published_at = null where id = 6`)
      })
      after(() =>
        execute(app.database, `update posts set published_at = '2026-01-01T00:00:00.000Z' where id between 3 and 8`),
      )

      it('publishedAfter and publishedBefore exclude the instant itself and sort by publication', async () => {
        const between = (args: string, variables?: object) => ids(`{ posts(${args}, limit: 100) { id } }`, variables)
        const before = `publishedBefore: "2021-01-01T00:00Z"`
        assert.deepEqual(await between(before), [7, 8, 5, 3, 4])
        assert.deepEqual(await between(`publishedAfter: "${at(1)}", ${before}`), [7, 8, 5, 3])
        assert.deepEqual(await between(`publishedAfter: "${at(1)}", publishedBefore: "${at(4)}"`), [8, 5, 3])
        assert.deepEqual(await between(`publishedAfter: "${at(2)}", publishedBefore: "${at(3)}"`), [])
        assert.deepEqual(
          await between(`publishedAfter: "2020-01-01T00:01:59.999Z", publishedBefore: "2020-01-01T00:02:00.001Z"`),
          [5, 3],
        )
        assert.deepEqual(await between(`publishedAfter: "${at(4)}", publishedBefore: "${at(1)}"`), [])
        const later = await between('publishedAfter: "2021-01-01T00:00Z"')
        assert.deepEqual(later, [13, 12, 11, 10, 9, 2, 1], 'posts that are published now, and no unpublished ones')
        assert.deepEqual(await ids(`{ posts(${before}, limit: 2, offset: 1) { id } }`), [8, 5])
        assert.deepEqual(
          (await ids('{ posts(limit: 100) { id } }')).slice(5, 11),
          [8, 7, 6, 5, 4, 3],
          'by id without them',
        )
      })

      it('R-GQL-11: the instants of a list are compared as instants, in every notation', async () => {
        const text = 'query ($a: DateTime, $b: DateTime) { posts(publishedAfter: $a, publishedBefore: $b) { id } }'
        for (const a of ['2020-01-01T00:01:00Z', '2020-01-01T01:01+01:00', '2019-12-31T19:01:00.000-05:00']) {
          assert.deepEqual(await ids(text, { a, b: '2020-01-01T00:03Z' }), [5, 3], a)
        }
        assert.deepEqual(await ids(text, { a: null, b: '2020-01-01T00:02Z' }), [4])
        assert.deepEqual(await ids(text, { b: '2020-01-01T00:02Z' }), [4])
        assert.deepEqual(await ids(text, {}), [13, 12, 11, 10, 9, 8, 7, 6, 5, 4])
      })
    })

    it('one operation works with variables of every shape, one request after the other', async () => {
      const text = `query ($after: DateTime, $max: Int, $if: Boolean = true) {
        posts(publishedAfter: $after, limit: $max) { id likes @include(if: $if) }
      }`
      const shapes = [
        {},
        { max: 0 },
        { max: 2 },
        { after: '2021-01-01T00:00Z', max: 2 },
        { if: false, max: 1 },
        { after: null, max: 1 },
      ]
      const expected = await Promise.all(
        shapes.map(async variables => {
          const {
            after = null,
            max = 10,
            if: shown = true,
          } = variables as { after?: string; max?: number; if?: boolean }
          const written = `{ posts(publishedAfter: ${JSON.stringify(after)}, limit: ${max}) { id ${shown ? 'likes' : ''} } }`
          return await read(app, written)
        }),
      )
      for (let round = 0; round < 3; round++) {
        for (const [index, variables] of shapes.entries()) {
          assert.deepEqual(await read(app, text, { variables }), expected[index], JSON.stringify(variables))
        }
      }
    })

    it('null for a required value is refused, even if its variable is nullable', async () => {
      const refused = async (text: string) =>
        assertRefused(await query(app, text, { variables: { x: null }, token: ann.token }), 400, 'BAD_USER_INPUT')
      await refused('query ($x: ID = "1") { post(id: $x) { id } }')
      await refused('query ($x: String = "User") { __type(name: $x) { name } }')
      await refused('query ($x: Boolean = true) { posts @include(if: $x) { id } }')
      await refused('query ($x: Boolean = true) { posts { id @skip(if: $x) } }')
      await using engine = app.database.open(catalogue)
      const count = () => rowsOf(engine, 'select count(*) from posts')
      const before = await count()
      await refused('mutation ($x: String = "T") { createPost(title: $x, content: "C") { id } }')
      await refused('mutation ($x: ID = "1") { likePost(id: $x) { id } }')
      assert.deepEqual(await count(), before)
    })

    it('names of built-in properties of JavaScript objects work like any other name', async () => {
      const variables =
        'query ($toString: Int, $constructor: Int = 1, $__proto__: Int) { a: users(limit: $toString) { id } b: users(limit: $constructor) { id } c: users(limit: $__proto__) { id } }'
      const { a, b, c } = await read<Record<string, readonly Id[]>>(app, variables)
      assert.deepEqual([a?.length, b?.length, c?.length], [3, 1, 3])
      const { body } = await query(
        app,
        '{ __proto__: post(id: 1) { constructor: id hasOwnProperty: title __proto__: likes } toString: __typename }',
      )
      assert.equal(
        body,
        '{"data":{"__proto__":{"constructor":"1","hasOwnProperty":"T1","__proto__":0},"toString":"Query"}}',
      )
    })

    it('users of the HTTP interface are the same users here, and changes there are visible here', async () => {
      const { id } = await createUser(app)
      await send(app, `PATCH /users/${id}`, { name: 'Zoë 🎈 "quoted" \\ ', avatar: 'http://example.com/?a=b&c="d"' })
      const { name, avatar } = bodyOf(await send(app, `GET /users/${id}`))
      assert.deepEqual(await read(app, `{ user(id: ${id}) { name avatar } }`), { user: { name, avatar } })
      await send(app, `DELETE /users/${id}`)
      assert.deepEqual(await read(app, `{ user(id: ${id}) { name } }`), { user: null })
    })
  })
}

const draft = 'mutation { createPost(title: "Draft", content: "C") { id } }'

function assertInstant(value: unknown): void {
  assert.match(String(value), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.equal(new Date(String(value)).toISOString(), value)
}
