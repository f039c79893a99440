import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gql } from '@apollo/client'
import fc from 'fast-check'
import { buildSchema, type GraphQLField, type GraphQLObjectType, getNamedType, isObjectType } from 'graphql'
import {
  graphql,
  iterate,
  mutate,
  operation,
  query,
  type Schema,
  type Selected,
  type Selection,
  subscribe,
} from '../../client/src/index.ts'
import { startTestApp } from '../support/app.ts'
import { runs } from '../support/form.ts'
import { shared } from '../support/shared.ts'
import { within } from '../support/wait.ts'
import { connectTo, type TestClient } from './support.ts'

/** `true` if the two types are the same, also in what may be null or absent. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

describe('A selection', () => {
  const app = shared(() => startTestApp({ DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' }))
  let client: TestClient
  before(async () => {
    client = connectTo(app)
    await client.duet.signIn({ email: 'ada@example.com', password: 'demo-password' })
  })
  after(() => client[Symbol.dispose]())

  it('gives exactly the selected fields, with the type that the compiler infers', async () => {
    const { duet } = client
    const found = await query(duet, {
      post: { $: { id: 1 }, title: true, comments: { $: { limit: 1 }, text: true, author: { name: true } } },
      users: { $: { limit: 1 }, name: true, avatar: true },
    })
    const isExact: Same<
      typeof found,
      {
        post: { title: string; comments: { text: string; author: { name: string } }[] } | null
        users: { name: string; avatar: string | null }[]
      }
    > = true
    assert.ok(isExact)
    assert.deepEqual(found.users, [{ name: 'Ada Lovelace', avatar: null }])
    assert.deepEqual(Object.keys(found.post ?? {}), ['title', 'comments'])
    assert.deepEqual(await query(duet, { post: { $: { id: '999999' } } }), { post: null })
    const absent = { posts: { $: { limit: undefined }, id: true }, me: true }
    assert.match(operation('Query', absent).text, /^query posts_me { posts { id } me { /)
  })

  it('of a whole object has all fields that are no objects, with `true`, with arguments alone, and with an asterisk', async () => {
    const { duet } = client
    const plain = Object.values(schema.Post?.getFields() ?? {}).filter(({ type }) => !isObjectType(getNamedType(type)))
    const text = `{ post(id: 1) { ${plain.map(({ name }) => name).join(' ')} } }`
    const { post: expected } = await graphql(duet).query<{ post: object }>(text)
    const { posts } = await query(duet, { posts: true })
    assert.deepEqual(Object.keys(posts[0] ?? {}), Object.keys(expected))
    const { post } = await query(duet, { post: { $: { id: 1 } } })
    assert.deepEqual(post, expected)
    const { post: more } = await query(duet, { post: { $: { id: 1 }, '*': true, title: true, author: { id: true } } })
    assert.deepEqual(more, { ...expected, author: { id: '1' } })
    type Whole = Exclude<typeof post, null>
    const isWhole: Same<keyof Whole, Exclude<keyof Schema.Post, '__typename' | 'author' | 'comments'>> = true
    const isNullable: Same<Whole['publishedAt'], string | null> = true
    const isMore: Same<Exclude<typeof more, null>['author'], { id: string }> = true
    assert.ok(isWhole && isNullable && isMore)
  })

  it('of a whole user leaves out the e-mail, which not everybody may read, unless it is named', async () => {
    const { duet } = client
    const { user } = await query(duet, { user: { $: { id: 2 } } })
    assert.deepEqual([user?.name, Object.hasOwn(user ?? {}, 'email')], ['Grace Hopper', false])
    const { user: named } = await query(duet, { user: { $: { id: 2 }, '*': true, email: true } })
    assert.equal(named?.email, 'grace@example.com')
    const isLeftOut: Same<keyof Exclude<typeof user, null> & ('name' | 'email'), 'name'> = true
    assert.ok(isLeftOut)
  })

  it('of one type is used in several operations, also in mutations and subscriptions', async () => {
    const { duet } = client
    const line = { id: true, title: true, author: { name: true } } satisfies Selection<Schema.Post>
    type Line = Selected<Schema.Post, typeof line>
    const isLine: Same<Line, { id: string; title: string; author: { name: string } }> = true
    assert.ok(isLine)
    const heard = Promise.withResolvers<Line>()
    const begun = Promise.withResolvers<void>()
    const joined = Promise.withResolvers<void>()
    const events = iterate(duet, { postAdded: { title: true } }, { onReadAnew: () => joined.resolve() })
    const subscription = subscribe(
      duet,
      { postAdded: line },
      { onData: ({ postAdded }) => heard.resolve(postAdded), onReadAnew: () => begun.resolve() },
    )
    await within(Promise.all([begun.promise, joined.promise]), 'the begin of both subscriptions')
    const title = '"} { \\ $title1'
    const { createPost } = await mutate(duet, { createPost: { $: { title, content: 'x' }, ...line } })
    assert.deepEqual(createPost, { id: createPost.id, title, author: { name: 'Ada Lovelace' } })
    assert.deepEqual(await within(heard.promise, 'the event'), createPost)
    assert.deepEqual(await events.next(), { done: false, value: { postAdded: { title } } })
    await events.return?.()
    subscription.close()
    const { deletePost } = await mutate(duet, { deletePost: { $: { id: createPost.id } } })
    const isBoolean: Same<typeof deletePost, boolean> = true
    assert.ok(isBoolean && deletePost)
  })

  it('that does not fit the schema is refused by the compiler, and when it runs', async () => {
    const { duet } = client
    const refused: Readonly<Record<string, () => Promise<unknown>>> = {
      // @ts-expect-error: Query has no such field
      'Query has no postss': () => query(duet, { postss: true }),
      // @ts-expect-error: "Post has no field nope"
      'Post has no nope': () => query(duet, { posts: { id: true, nope: true } }),
      // @ts-expect-error: "Post has no field constructor"
      'Post has no constructor': () => query(duet, { posts: { id: true, constructor: true } }),
      // @ts-expect-error: "There is no argument limits"
      'posts has no limits': () => query(duet, { posts: { $: { limit: 1, limits: 1 }, id: true } }),
      // @ts-expect-error: "There is no argument id"
      'me has no id': () => query(duet, { me: { $: { id: 1 }, name: true } }),
      // @ts-expect-error: `false` is no selection
      'Post.title is neither true nor a selection': () => query(duet, { posts: { id: true, title: false } }),
      // @ts-expect-error: a limit is a number
      'Variable "$limit1"': () => query(duet, { posts: { $: { limit: '1' }, id: true } }),
      // @ts-expect-error: the id is missing
      'Argument "Query.post(id:)"': () => query(duet, { post: true }),
      // @ts-expect-error: the id is missing
      'Argument "Query.user(id:)"': () => query(duet, { user: { $: {}, name: true } }),
      // @ts-expect-error: an id is not null
      'Variable "$id1"': () => mutate(duet, { likePost: { $: { id: null } } }),
      // @ts-expect-error: Mutation has no such field
      'Mutation has no posts': () => mutate(duet, { posts: true }),
      // @ts-expect-error: the id is missing
      'Argument "Mutation.deletePost(id:)"': () => mutate(duet, { deletePost: true }),
    }
    for (const [message, run] of Object.entries(refused)) {
      await assert.rejects(run, (error: Error) => error.message.startsWith(message) || assert.fail(error.message))
    }
    const { post } = await query(duet, { post: { $: { id: 1 }, title: true } })
    // @ts-expect-error: not selected
    assert.equal(post?.content, undefined)
    // @ts-expect-error: there may be none
    assert.ok(post.title)
    // @ts-expect-error: a plain field has no fields of its own
    assert.ok(operation('Mutation', { deletePost: { $: { id: 1 }, id: true } } satisfies Selection<Schema.Mutation>))
  })

  it("or a document is sent with its variables and the session's token, from a text or an object", async () => {
    const { mutate, query } = graphql(client.duet)
    const create = 'mutation ($title: String!) { createPost(title: $title, content: "x") { id author { name } } }'
    const { createPost } = await mutate<{ createPost: { id: string } }>(create, { title: 'A' })
    assert.deepEqual(createPost, { id: createPost.id, author: { name: 'Ada Lovelace' } })
    const text = 'query ($n: Int) { posts(limit: $n) { title } }'
    for (const document of [text, new String(text), { toString: () => text }, gql(text)])
      assert.deepEqual(await query(document, { n: 1 }), { posts: [{ title: 'A' }] })
    assert.deepEqual(await query('{ posts(limit: 1) { title } }'), { posts: [{ title: 'A' }] })
    await assert.rejects(query({ kind: 'Document', definitions: [] } as object), /documentMode: 'string'/)
    const body = JSON.parse(client.requests.at(-1)?.body ?? '')
    assert.deepEqual(body, { query: '{ posts(limit: 1) { title } }' })
    const stale = 'mutation ($id: ID!) { updatePost(id: $id, title: "B", ifUpdatedAt: "2020-01-01T00:00Z") { id } }'
    const refusal = { kind: 'conflict', code: 'CONFLICT', message: 'The post has changed' }
    await assert.rejects(mutate(stale, { id: createPost.id }), refusal)
    await mutate('mutation ($id: ID!) { deletePost(id: $id) }', { id: createPost.id })
  })

  it('gets the same answer as a document that is written by hand', async () => {
    const { duet } = client
    const root = schema.Query ?? assert.fail()
    await fc.assert(
      fc.asyncProperty(anySelection(root, 3), async ({ selection, text }) => {
        const { text: built, variables } = operation('Query', selection)
        const answers = [graphql(duet).query(built, variables), graphql(duet).query(text)]
        const [actual, expected] = await Promise.all(answers)
        assert.equal(JSON.stringify(actual), JSON.stringify(expected))
      }),
      { numRuns: runs(15, 1000) },
    )
  })
})

const sdl = readFileSync(join(import.meta.dirname, '..', '..', 'api', 'schema.graphql'), 'utf8')
const schema = buildSchema(sdl).getTypeMap() as Readonly<Record<string, GraphQLObjectType>>

/** A random selection, and the same as a part of a document with all values in it. */
interface Asked {
  readonly selection: object
  readonly text: string
}

function anySelection(type: GraphQLObjectType, depth: number): fc.Arbitrary<Asked> {
  const fields = Object.values(type.getFields()).filter(each => depth > 0 || !isObjectType(getNamedType(each.type)))
  return fc.subarray(fields, { minLength: 1 }).chain(chosen =>
    fc.tuple(...chosen.map(field => anyField(field, depth))).map(asked => ({
      selection: Object.fromEntries(asked.map(({ selection }, at) => [chosen[at]?.name, selection])),
      text: `{ ${asked.map(({ text }) => text).join(' ')} }`,
    })),
  )
}

function anyField({ name, type, args }: GraphQLField, depth: number): fc.Arbitrary<Asked> {
  const named = getNamedType(type)
  if (!isObjectType(named)) return fc.constant({ selection: true as never, text: name })
  const values = args.flatMap(arg => given[arg.name]?.map(value => [arg.name, value] as const) ?? [])
  return fc.tuple(fc.tuple(...values), anySelection(named, depth - 1)).map(([pairs, inner]) => {
    const texts = pairs.map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
    return {
      selection: { $: Object.fromEntries(pairs), ...inner.selection },
      text: `${name}${texts.length === 0 ? '' : `(${texts.join(', ')})`} ${inner.text}`,
    }
  })
}

const given: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  id: fc.constantFrom(1, '2', '7', '999999'),
  limit: fc.constantFrom(0, 2, 3),
  after: fc.constantFrom(null, 3, '4'),
  publishedBefore: fc.constant(null),
}
