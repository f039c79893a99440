import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { execute } from '../faults/execute.ts'
import { startTestAppOn, type TestApp } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { assertRefused, dataOf, get, query, read, repeat } from '../support/graphql.ts'
import { createMember, createUser } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'

interface Id {
  readonly id: string
}

describe('A list after an id', () => {
  const app = shared(() => startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0' }))
  let ann: Awaited<ReturnType<typeof createMember>>

  // Users 1 to 5. Posts 1 to 8: odd ids belong to Ann (1), even ids to Bob (2). Comments 1 to 6: 1, 3 and 5 are on
  // post 1, the others on post 2.
  before(async () => {
    ann = await createMember(app)
    const bob = await createMember(app)
    for (let n = 0; n < 3; n++) await createUser(app)
    for (let n = 1; n <= 8; n++)
      await read(app, `mutation { createPost(title: "T${n}", content: "C") { id } }`, n % 2 === 1 ? ann : bob)
    for (let n = 1; n <= 6; n++)
      await read(app, `mutation { addComment(postId: ${2 - (n % 2)}, text: "Text") { id } }`, bob)
  })

  const idsIn = (list: readonly Id[] | undefined) => list?.map(({ id }) => Number(id))
  const ids = async (text: string, variables?: object) =>
    idsIn(Object.values(await read<Record<string, readonly Id[]>>(app, text, { variables }))[0])

  it('has the items that follow the one with this id in the order of the list', async () => {
    assert.deepEqual(await ids('{ posts(after: "6") { id } }'), [5, 4, 3, 2, 1])
    assert.deepEqual(await ids('{ posts(after: 6, limit: 2) { id } }'), [5, 4])
    assert.deepEqual(await ids('{ posts(after: 1) { id } }'), [])
    assert.deepEqual(await ids('{ users(after: 3) { id } }'), [4, 5])
    assert.deepEqual(await ids('{ users(limit: 1, after: 3) { id } }'), [4])
    assert.deepEqual(await ids('{ users(after: 5) { id } }'), [])
  })

  it('is refused for an id that cannot name a row, before it is executed', async () => {
    for (const id of ['abc', '', '0', '01', '-1', '1.5', '9007199254740992', '1 or 1 = 1']) {
      const asked = { variables: { id } }
      const message = 'after must be an id'
      for (const text of [
        'query ($id: ID) { posts(after: $id) { id } }',
        'query ($id: ID) { user(id: 999) { posts(limit: 0, after: $id) { id } } }',
        'query ($id: ID) { posts { comments(after: $id) { id } } }',
        'query ($id: ID) { users(after: $id) { email } me { id } }',
        'mutation ($id: ID) { likePost(id: 1) { comments(after: $id) { id } } }',
      ])
        assertRefused(await query(app, text, asked), 400, 'BAD_USER_INPUT', message)
    }
    assert.deepEqual(await read(app, '{ post(id: 1) { likes } }'), { post: { likes: 0 } })
  })

  it('is refused together with another argument that sets the start of the list', async () => {
    const at = '"2026-01-31T12:00:00Z"'
    for (const [field, other] of [
      ['posts(after: 3, offset: 1)', 'offset'],
      ['posts(after: 3, offset: 0)', 'offset'],
      [`posts(after: 3, publishedAfter: ${at})`, 'publishedAfter'],
      [`posts(publishedBefore: ${at}, after: 3)`, 'publishedBefore'],
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

  it('has the same cost as from its beginning, and skips no rows', async () => {
    const cost = (after: string) => `{ posts(limit: 10${after}) { ${repeat(101, n => `a${n}: id`)} } }`
    for (const text of [cost(''), cost(', after: 3')]) {
      const { extensions } = assertRefused(await query(app, text), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
      assert.equal(extensions.cost, 1010)
    }
    const pages = repeat(70, n => `a${n}: posts(limit: 1, after: 9000000${n}) { id }`)
    dataOf(await query(app, `{ ${pages} }`))
  })
})

describe('A list that is read page by page', () => {
  it('gives every item that is there all the time exactly once, while others are added and deleted', async () => {
    await using app = await startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0' })
    const ann = await createMember(app)
    const count = inForm(1_000, 10_000)
    await execute(
      app.database,
      `insert into posts (author_id, title, content, published_at)
         with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count})
         select ${ann.id}, 'Title', 'Content', '2026-01-01T00:00:00.000Z' from n`,
    )
    const before = Array.from({ length: count }, (_, n) => count - n)
    const deleted = new Set<number>()
    const seen: number[] = []
    const page = 'query ($after: ID) { posts(limit: 50, after: $after) { id } }'
    for (let last: number | undefined; ; ) {
      const [{ posts }] = await Promise.all([
        read<{ posts: readonly Id[] }>(app, page, { variables: { after: last } }),
        disturb(app, ann.token, before, last, deleted),
      ])
      if (posts.length === 0) break
      seen.push(...posts.map(({ id }) => Number(id)))
      last = seen.at(-1)
    }
    assert.equal(new Set(seen).size, seen.length, 'no post is returned twice')
    const stayed = before.filter(id => !deleted.has(id))
    assert.ok(stayed.length > count / 2 && deleted.size > count / 50, `${stayed.length} stayed`)
    const found = new Set(seen)
    assert.deepEqual(
      stayed.filter(id => !found.has(id)),
      [],
    )
  })
})

/** Adds a post and deletes some, among them the one that the next page starts after. */
async function disturb(
  app: TestApp,
  token: string,
  ids: readonly number[],
  last: number | undefined,
  deleted: Set<number>,
): Promise<void> {
  const at = ids.indexOf(last ?? -1)
  const gone = [at, at + 3, at + 60, at - 7].map(index => ids[index]).filter(id => id !== undefined)
  for (const id of gone) deleted.add(id)
  const deletions = gone.map((id, n) => `d${n}: deletePost(id: ${id})`).join(' ')
  await read(app, `mutation { createPost(title: "T", content: "C") { id } ${deletions} }`, { token })
}
