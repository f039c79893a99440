import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { assertRefused, dataOf, get, query, read, repeat } from '../support/graphql.ts'
import { createMember } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'

describe('An operation that skips more than 100,000 rows', () => {
  const app = shared(() => startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0' }))
  let ann: Awaited<ReturnType<typeof createMember>>
  before(async () => {
    ann = await createMember(app)
    await read(app, 'mutation { createPost(title: "T", content: "C") { id } }', ann)
  })

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
