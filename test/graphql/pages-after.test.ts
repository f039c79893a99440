import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { assertRefused, dataOf, get, query, read, repeat } from '../support/graphql.ts'
import { createMember, createUser } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'

describe('A list after an id', () => {
  const app = shared(() => startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0' }))
  // Users 1 to 5. Posts 1 to 8: odd ids belong to Ann (1), even ids to Bob (2). Comments 1 to 6: 1, 3 and 5 are on
  // post 1, the others on post 2.
  before(async () => {
    const ann = await createMember(app)
    const bob = await createMember(app)
    for (let n = 0; n < 3; n++) await createUser(app)
    for (let n = 1; n <= 8; n++)
      await read(app, `mutation { createPost(title: "T${n}", content: "C") { id } }`, n % 2 === 1 ? ann : bob)
    for (let n = 1; n <= 6; n++)
      await read(app, `mutation { addComment(postId: ${2 - (n % 2)}, text: "Text") { id } }`, bob)
  })

  const ids = async (text: string) =>
    Object.values(await read<Record<string, readonly { id: string }[]>>(app, text))[0]?.map(({ id }) => Number(id))

  it('has the items that follow the one with this id in the order of the list', async () => {
    assert.deepEqual(await ids('{ posts(after: "6") { id } }'), [5, 4, 3, 2, 1])
    assert.deepEqual(await ids('{ posts(after: 6, limit: 2) { id } }'), [5, 4])
    assert.deepEqual(await ids('{ posts(after: 1) { id } }'), [])
    assert.deepEqual(await ids('{ users(after: 3) { id } }'), [4, 5])
    assert.deepEqual(await ids('{ users(limit: 1, after: 3) { id } }'), [4])
    assert.deepEqual(await ids('{ users(after: 5) { id } }'), [])
    assert.deepEqual(await ids('{ posts(after: 9) { id } }'), [8, 7, 6, 5, 4, 3, 2, 1], 'no post has this id')
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
