import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { type ErrorBody, get, query, read, repeat, rowsOf } from '../support/graphql.ts'
import { RawConnection } from '../support/http.ts'
import { createMember, logIn, type Member } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { type Answer, SocketClient } from '../support/sockets.ts'
import { atEachTurn, waitUntil } from '../support/wait.ts'
import { newPost } from './posts.ts'

interface Asked {
  readonly variables?: Readonly<Record<string, unknown>>
  readonly token?: string | undefined
}

type Transport = (app: { readonly url: string }, text: string, asked?: Asked) => Promise<Answer>

const byPost: Transport = async (app, text, asked) => answerIn((await query(app, text, asked)).body)

const byGet: Transport = async (app, text, { variables = {}, token } = {}) =>
  answerIn((await get(app, { query: text, variables: JSON.stringify(variables) }, { token })).body)

const bySocket: Transport = async (app, text, { variables, token } = {}) => {
  using client = await SocketClient.connect(app, { token })
  return await client.ask(text, variables)
}

function answerIn(body: string): Answer {
  const { data, errors, ...more } = JSON.parse(body)
  assert.deepEqual(more, {})
  return { data, errors }
}

type Case = readonly [code: string, text: string, asked?: { readonly variables?: object; readonly as?: 'member' }]

/** Refused operations, each for a different reason. */
const refusedQueries: readonly Case[] = [
  ['GRAPHQL_PARSE_FAILED', '{ post('],
  ['GRAPHQL_VALIDATION_FAILED', '{ nothing }'],
  ['DEPTH_LIMIT_EXCEEDED', '{ user(id: 1) { posts { comments { author { posts { author { id } } } } } } }'],
  ['COMPLEXITY_LIMIT_EXCEEDED', 'query ($n: Int) { posts(limit: $n) { comments { id } } }', { variables: { n: 101 } }],
  ['BAD_USER_INPUT', 'query ($n: Int) { posts(limit: $n) { id } }', { variables: { n: 'x' } }],
  ['BAD_USER_INPUT', '{ posts(limit: -1) { id } }'],
  ['DOCUMENT_TOO_LARGE', `{ ${repeat(2001, () => 'a')} }`],
  ['OPERATION_RESOLUTION_FAILURE', 'query A { __typename } query B { __typename }'],
  ['UNAUTHENTICATED', '{ users { email } }'],
  ['FORBIDDEN', '{ users { email } }', { as: 'member' }],
]

const refusedMutations: readonly Case[] = [
  ['UNAUTHENTICATED', 'mutation { likePost(id: 1) { id } }'],
  ['NOT_FOUND', 'mutation { likePost(id: 1) { id } b: addComment(postId: 0, text: "x") { id } }', { as: 'member' }],
  [
    'BAD_USER_INPUT',
    'mutation { likePost(id: 1) { id } createPost(title: " ", content: "") { id } }',
    { as: 'member' },
  ],
  ['FORBIDDEN', 'mutation { deletePost(id: 1) }', { as: 'member' }],
  [
    'COMPLEXITY_LIMIT_EXCEEDED',
    `mutation { ${repeat(40, n => `a${n}: likePost(id: 1) { comments(limit: 10) { author { id } } }`)} }`,
    { as: 'member' },
  ],
]

describe('The same operation by POST, by GET and over a socket', () => {
  const app = shared(() => startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0', ACCESS_POLICY: 'enforced' }))
  let ann: Member
  let bob: Member
  before(async () => {
    ann = await createMember(app)
    bob = await createMember(app)
    const text = 'mutation { createPost(title: "The first", content: "C") { id } }'
    assert.deepEqual(await read(app, text, ann), { createPost: { id: '1' } })
  })

  /** Everything that an operation may change. */
  const state = async () => [
    await rowsOf(app.engine, 'select id, author_id, title, content, likes from posts order by id'),
    await rowsOf(app.engine, 'select id, post_id, text from comments order by id'),
    await rowsOf(app.engine, 'select id, kind from outbox order by id'),
  ]

  const refusedAlike = async ([code, text, { variables = {}, as } = {}]: Case, transports: readonly Transport[]) => {
    const before = await state()
    const refusals: (readonly ErrorBody[])[] = []
    for (const transport of transports) {
      const { data, errors } = await transport(app, text, { variables: { ...variables }, token: as && bob.token })
      assert.equal(data, undefined, text)
      assert.equal(errors?.[0]?.extensions.code, code, `${text}: ${JSON.stringify(errors)}`)
      refusals.push(errors ?? [])
    }
    for (const refusal of refusals) assert.deepEqual(refusal, refusals[0])
    assert.deepEqual(await state(), before)
  }

  it('refused: with the same code and message, and nothing is changed', async () => {
    for (const each of refusedQueries) await refusedAlike(each, [byPost, byGet, bySocket])
    const large = `{ __typename }${' '.repeat(64 * 1024 - 13)}` // longer than the address of a GET
    for (const each of [...refusedMutations, ['DOCUMENT_TOO_LARGE', large] as const])
      await refusedAlike(each, [byPost, bySocket])
  })

  it('R-GQL-4: queries and mutations get the same answers', async () => {
    const text = `query ($id: ID!) {
        post(id: $id) { ...Shown } users(limit: 2) { id name } __typename me { email }
      } fragment Shown on Post { id title at: publishedAt author { name } }`
    const asked = { variables: { id: '1' }, token: ann.token }
    const expected = await byPost(app, text, asked)
    assert.equal(expected.errors, undefined)
    assert.deepEqual(await bySocket(app, text, asked), expected)
    assert.deepEqual(await byGet(app, text, asked), expected)
    const like = 'mutation { likePost(id: 1) { likes } }'
    const likes = [await byPost(app, like, bob), await bySocket(app, like, bob), await byPost(app, like, bob)]
    for (const [at, { data }] of likes.entries()) assert.deepEqual(data, { likePost: { likes: at + 1 } })
  })

  it('of the messages of one packet of a socket one is handled in a turn', async () => {
    using client = await SocketClient.connect(app)
    const asked = Array.from({ length: 10 }, () => client.begin('{'))
    const done = () => asked.filter(({ isOver }) => isOver).length
    const counts = await atEachTurn(done, () => waitUntil(() => done() === 10))
    assert.ok(counts.length >= 4, `turns at ${counts}`)
  })

  it('R-API-1: a token applies only to its own request or socket, and to no later one', async () => {
    using connection = await RawConnection.open(app.port)
    const asks = [
      (token: string) => `GET /users/me HTTP/1.1\r\nHost: localhost\r\n${token}\r\n`,
      (token: string) => `GET /graphql?query=%7Bme%7Bid%7D%7D HTTP/1.1\r\nHost: localhost\r\n${token}\r\n`,
    ]
    for (const asked of asks) {
      for (const [token, status] of [
        [`Authorization: Bearer ${ann.token}\r\n`, 200],
        ['', 401],
      ] as const) {
        connection.write(asked(token))
        assert.equal((await connection.response()).status, status)
      }
    }
    using known = await SocketClient.connect(app, { token: ann.token })
    // Under the enforced policy, pages of any origin may open sockets.
    using unknown = await SocketClient.connect(app, { headers: { origin: 'https://anything.example' } })
    assert.deepEqual(await known.read('{ me { id } }'), { me: { id: String(ann.id) } })
    assert.equal((await unknown.ask('{ me { id } }')).errors?.[0]?.extensions.code, 'UNAUTHENTICATED')
  })

  describe('with large answers', () => {
    const aliases = (count: number) => repeat(count, n => `a${n}: content`)
    const content = 'x€'.repeat(16_384)
    beforeEach(async () => {
      const text = `mutation ($c: String!) { ${repeat(14, n => `p${n}: createPost(title: "T", content: $c) { id }`)} }`
      await read(app, text, { variables: { c: content }, token: ann.token })
    })

    it('up to 2 MiB: sent completely to a client that reads it, and above refused with RESPONSE_TOO_LARGE', async () => {
      const text = `{ posts(limit: 14) { ${aliases(2)} } }`
      const expected: Answer = { data: { posts: Array(14).fill({ a0: content, a1: content }) }, errors: undefined }
      for (const transport of [byPost, byGet, bySocket]) assert.deepEqual(await transport(app, text), expected)
      const large = `{ posts(limit: 14) { ${aliases(3)} } }`
      await refusedAlike(['RESPONSE_TOO_LARGE', large], [byPost, byGet, bySocket])
    })

    it('that are equal and asked for at once are whole, each of them', async () => {
      for (let round = 0; round < 3; round++) {
        const asked = Array.from({ length: 20 }, () => byPost(app, '{ posts(limit: 3) { content } }'))
        for (const { data } of await Promise.all(asked)) assert.deepEqual(data, { posts: Array(3).fill({ content }) })
      }
    })

    it('an event above 262,144 characters ends its subscription with RESPONSE_TOO_LARGE, and no others', async () => {
      using client = await SocketClient.connect(app, { token: ann.token })
      const [three, four] = [3, 4].map(count => `subscription { postAdded { title ${aliases(count)} } }`)
      const other = await client.begin(three ?? '').listening(text => newPost(client, text))
      const large = client.begin(four ?? '')
      // The start of a subscription is not announced, so posts are added until one event is refused.
      const text = `mutation ($c: String!) { createPost(title: "T", content: $c) { id } }`
      for (let n = 0; !large.isOver; n++) {
        assert.ok(n < 100, `${n} posts were added, and none was refused`)
        await read(app, text, { variables: { c: 'é'.repeat(65_536) }, token: ann.token })
        await other.received(n + 1)
        await client.ask('{ __typename }')
      }
      assert.equal(large.errors?.[0]?.extensions.code, 'RESPONSE_TOO_LARGE')
      assert.deepEqual(large.events, [])
      assert.ok(!other.isOver)
    })
  })
})

describe('Subscriptions have the limits of all operations', () => {
  const app = shared(() => startTestApp({ RATE_LIMIT_MAX: '0', ACCESS_POLICY: 'enforced', DEMO_DATA: 'true' }))
  let token: string
  before(async () => (token = (await createMember(app)).token))

  it('an admin gets the e-mails of others, of what was added and of what was changed', async () => {
    using client = await SocketClient.connect(app, { token: await logIn(app, 'ada@example.com', 'demo-password') })
    using member = await SocketClient.connect(app, { token })
    const listening = client.begin('subscription { postAdded { id author { email } } }')
    const subscription = await listening.listening(text => newPost(member, text))
    const id = await newPost(member)
    const [event] = await subscription.received(1)
    const { me } = await read<{ me: { email: string } }>(app, '{ me { email } }', { token })
    assert.deepEqual(event, { postAdded: { id, author: me } })
    const update = async () => {
      await read(app, `mutation { updatePost(id: ${id}, title: "U") { id } }`, { token })
      return id
    }
    const updates = await client.begin('subscription { postUpdated { id author { email } } }').listening(update)
    await update()
    assert.deepEqual(await updates.received(1), [{ postUpdated: { id, author: me } }])
  })

  const cases: readonly Case[] = [
    ['GRAPHQL_VALIDATION_FAILED', 'subscription { a: postAdded { id } b: postAdded { id } }'],
    ['GRAPHQL_VALIDATION_FAILED', 'subscription { __typename }'],
    ['DEPTH_LIMIT_EXCEEDED', 'subscription { postAdded { author { posts { author { posts { author { id } } } } } } }'],
    ['COMPLEXITY_LIMIT_EXCEEDED', 'subscription { postAdded { comments(limit: 500) { id text } } }'],
    ['BAD_USER_INPUT', 'subscription ($id: ID!) { commentAdded(postId: $id) { id } }'],
    ['BAD_USER_INPUT', 'subscription { postAdded { comments(limit: -1) { id } } }'],
    ['UNAUTHENTICATED', 'subscription { postAdded { author { email } } }'],
    ['FORBIDDEN', 'subscription { postAdded { author { email } } }', { as: 'member' }],
    ['GRAPHQL_VALIDATION_FAILED', 'subscription { postAdded @include(if: false) { id } }'],
    ['FORBIDDEN', 'subscription { postUpdated { comments { author { email } } } }', { as: 'member' }],
    ['FORBIDDEN', 'subscription { commentUpdated(postId: 1) { post { author { email } } } }', { as: 'member' }],
  ]
  it('refused with the same codes, and the socket stays open', async () => {
    for (const [code, text, { variables = {}, as } = {}] of cases) {
      using client = await SocketClient.connect(app, { token: as && token })
      const { data, errors } = await client.ask(text, { ...variables })
      assert.equal(data, undefined, text)
      assert.equal(errors?.[0]?.extensions.code, code, `${text}: ${JSON.stringify(errors)}`)
      assert.deepEqual(await client.read('{ __typename }'), { __typename: 'Query' })
    }
  })
})

describe('The rate limit over a socket', () => {
  const typename = '{ __typename }'

  it('R-LIM-4: counts the upgrade and each operation as one request, with those over HTTP, and no other message', async () => {
    await using app = await startTestApp({ RATE_LIMIT_MAX: '6' })
    using client = await SocketClient.connect(app) // 1
    for (const message of [{ type: 'ping' }, { type: 'pong' }, { type: 'complete', id: 'none' }])
      for (let n = 0; n < 10; n++) client.send(message)
    assert.equal((await query(app, typename)).status, 200) // 2
    await client.read(typename) // 3
    assert.equal((await client.ask('{ nothing }')).errors?.[0]?.extensions.code, 'GRAPHQL_VALIDATION_FAILED') // 4
    const subscription = client.begin('subscription { postAdded { id } }') // 5
    assert.equal((await query(app, typename)).status, 200) // 6
    assert.equal((await query(app, typename)).status, 429)
    for (const text of [typename, 'subscription { postAdded { id } }', typename]) {
      assert.deepEqual((await client.ask(text)).errors, [
        { message: 'Too many requests. Try again later.', extensions: { code: 'RATE_LIMITED' } },
      ])
    }
    assert.ok(!client.isClosed && !subscription.isOver)
  })

  it('does not apply if /graphql is not a limited path', async () => {
    await using app = await startTestApp({ RATE_LIMIT_MAX: '1', RATE_LIMIT_PATHS: '/api/' })
    using client = await SocketClient.connect(app)
    for (let n = 0; n < 3; n++) await client.read(typename)
  })
})
