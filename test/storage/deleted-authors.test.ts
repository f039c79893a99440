import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { anonymous, type IdentifiedUser } from '../../src/core/actor.ts'
import { profileOf } from '../../src/core/users/user.ts'
import { Rollback } from '../../src/storage/verb.ts'
import { verbs } from '../../src/storage/verbs.ts'
import { postgres } from '../support/engines.ts'
import { waitUntil } from '../support/wait.ts'
import { connectTo, isWaiting, Transaction } from './transaction.ts'

describe('A post that is created while its author is deleted, on PostgreSQL', { skip: postgres.skip }, () => {
  const parts = new AsyncDisposableStack()
  let deleting: pg.Client
  let creating: pg.Client
  before(async () => {
    const database = parts.use(await postgres.create())
    deleting = parts.use(await connectTo(database.location))
    creating = parts.use(await connectTo(database.location))
  })
  after(() => parts.disposeAsync())

  it('gets a deletion event if its transaction ends while the deletion waits for it', async () => {
    const author = await createAuthor(creating)
    const creation = await Transaction.begin(creating, createPost(author))
    const postId = idOf(await creation.finish())
    const deletion = Transaction.run(deleting, verbs.deleteUser(author.id, anonymous))
    await waitUntil(() => isWaiting(deleting, creating))
    await creating.query('commit')
    assert.equal(await deletion, 'gone')
    assert.deepEqual(await eventsOf(creating, postId), ['post-added', 'post-deleted'])
  })

  it('gets a deletion event or is refused, after each statement of the deletion', async () => {
    await creating.query("set lock_timeout = '100ms'")
    const fates: string[] = []
    for (let statements = 0, end: object | undefined; end === undefined; statements++) {
      const author = await createAuthor(creating)
      const deletion = await Transaction.begin(deleting, verbs.deleteUser(author.id, anonymous))
      end = await deletion.advance(statements)
      const postId = await createUnlessLocked(creating, author)
      if (end === undefined) await deletion.finish()
      await deleting.query('commit')
      fates.push(postId === undefined ? 'refused' : (await eventsOf(creating, postId)).join(', '))
    }
    const announced = 'post-added, post-deleted'
    assert.equal(fates[0], announced, 'before the first statement')
    assert.equal(fates.at(-1), 'refused', 'after the last statement')
    assert.deepEqual([...new Set(fates)].sort(), [announced, 'refused'])
  })
})

async function createAuthor(client: pg.Client): Promise<IdentifiedUser> {
  const tokenVersion = 'version'
  const values = { name: 'Ann', email: 'ann@example.com', ...profileOf(() => null), password: null, tokenVersion }
  const user = await Transaction.run(client, verbs.createUser(values))
  return typeof user === 'string' || user instanceof Rollback
    ? assert.fail()
    : { kind: 'user', id: user.id, role: 'member', tokenVersion }
}

function createPost(author: IdentifiedUser) {
  const show = { text: 'select cast($1 as text)', values: [null], id: 0 } as const
  return verbs.changePosts(author, [{ kind: 'create a post', title: 'Title', content: 'Content', show }])
}

async function createUnlessLocked(client: pg.Client, author: IdentifiedUser): Promise<number | undefined> {
  try {
    return idOf(await Transaction.run(client, createPost(author)))
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === '55P03') return undefined // lock timeout
    throw error
  }
}

function idOf(outcome: unknown): number {
  return Array.isArray(outcome) ? Number(outcome[0]) : assert.fail(`not created: ${JSON.stringify(outcome)}`)
}

async function eventsOf(client: pg.Client, postId: number): Promise<readonly string[]> {
  const { rows } = await client.query('select kind from outbox where post_id = $1 order by id', [postId])
  return rows.map(({ kind }) => kind)
}
