import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { anonymous, type IdentifiedUser } from '../../src/core/actor.ts'
import { profileOf } from '../../src/core/users/user.ts'
import type { Row } from '../../src/storage/sql.ts'
import { Rollback, type Steps } from '../../src/storage/verb.ts'
import { verbs } from '../../src/storage/verbs.ts'
import { postgres, type TestDatabase } from '../support/engines.ts'
import { waitUntil } from '../support/wait.ts'

/** One connection that runs verbs one statement at a time, without the timeouts of the engine. */
class Session implements AsyncDisposable {
  readonly client: pg.Client

  static async open({ location }: TestDatabase): Promise<Session> {
    const session = new Session(new pg.Client({ connectionString: location }))
    await session.client.connect()
    return session
  }

  private constructor(client: pg.Client) {
    this.client = client
  }

  async begin<Outcome>(steps: Steps<Outcome>): Promise<Transaction<Outcome>> {
    await this.client.query('begin')
    return new Transaction(this.client, steps)
  }

  async run<Outcome>(steps: Steps<Outcome>): Promise<Outcome> {
    const transaction = await this.begin(steps)
    const outcome = await transaction.finish()
    await this.client.query('commit')
    return outcome
  }

  async waitsFor(other: Session): Promise<boolean> {
    const { rows } = await other.client.query('select pg_backend_pid() = any(pg_blocking_pids($1)) as waits', [
      this.#pid,
    ])
    return rows[0].waits
  }

  get #pid(): number {
    return (this.client as unknown as { processID: number }).processID
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.end()
  }
}

class Transaction<Outcome> {
  readonly #client: pg.Client
  readonly #steps: Steps<Outcome>
  #rows: readonly Row[] = []

  constructor(client: pg.Client, steps: Steps<Outcome>) {
    this.#client = client
    this.#steps = steps
  }

  /** Runs up to this many further statements. Returns the outcome after the last one. */
  async advance(statements: number): Promise<{ readonly outcome: Outcome } | undefined> {
    for (let left = statements; left > 0; left--) {
      const { done, value } = this.#steps.next(this.#rows)
      if (done) return { outcome: value }
      const { rows } = await this.#client.query({ text: value.text, values: [...value.values], rowMode: 'array' })
      this.#rows = rows
    }
    return undefined
  }

  async finish(): Promise<Outcome> {
    const end = await this.advance(Number.POSITIVE_INFINITY)
    return end === undefined ? assert.fail() : end.outcome
  }
}

describe('A post that is created while its author is deleted, on PostgreSQL', { skip: postgres.skip }, () => {
  const parts = new AsyncDisposableStack()
  let deleting: Session
  let creating: Session
  before(async () => {
    const database = parts.use(await postgres.create())
    await database.migrate()
    deleting = parts.use(await Session.open(database))
    creating = parts.use(await Session.open(database))
  })
  after(() => parts.disposeAsync())

  it('gets a deletion event if its transaction ends while the deletion waits for it', async () => {
    const author = await createAuthor(creating)
    const creation = await creating.begin(createPost(author))
    const postId = idOf(await creation.finish())
    const deletion = deleting.run(verbs.deleteUser(author.id, anonymous))
    await waitUntil(() => deleting.waitsFor(creating))
    await creating.client.query('commit')
    assert.equal(await deletion, 'gone')
    assert.deepEqual(await eventsOf(creating, postId), ['post-added', 'post-deleted'])
  })

  it('gets a deletion event or is refused, after each statement of the deletion', async () => {
    await creating.client.query("set lock_timeout = '100ms'")
    const fates: string[] = []
    for (let statements = 0, end: object | undefined; end === undefined; statements++) {
      const author = await createAuthor(creating)
      const deletion = await deleting.begin(verbs.deleteUser(author.id, anonymous))
      end = await deletion.advance(statements)
      const postId = await createUnlessLocked(creating, author)
      if (end === undefined) await deletion.finish()
      await deleting.client.query('commit')
      fates.push(postId === undefined ? 'refused' : (await eventsOf(creating, postId)).join(', '))
    }
    const announced = 'post-added, post-deleted'
    assert.equal(fates[0], announced, 'before the first statement')
    assert.equal(fates.at(-1), 'refused', 'after the last statement')
    assert.deepEqual([...new Set(fates)].sort(), [announced, 'refused'])
  })
})

async function createAuthor(session: Session): Promise<IdentifiedUser> {
  const tokenVersion = 'version'
  const values = { name: 'Ann', email: 'ann@example.com', ...profileOf(() => null), password: null, tokenVersion }
  const user = await session.run(verbs.createUser(values))
  return typeof user === 'string' || user instanceof Rollback
    ? assert.fail()
    : { kind: 'user', id: user.id, role: 'member', tokenVersion }
}

function createPost(author: IdentifiedUser) {
  const show = { text: 'select cast($1 as text)', values: [null], id: 0 } as const
  return verbs.changePosts(author, [{ kind: 'create a post', title: 'Title', content: 'Content', show }])
}

async function createUnlessLocked(session: Session, author: IdentifiedUser): Promise<number | undefined> {
  try {
    return idOf(await session.run(createPost(author)))
  } catch (error) {
    await session.client.query('rollback')
    if (error instanceof pg.DatabaseError && error.code === '55P03') return undefined // lock timeout
    throw error
  }
}

function idOf(outcome: unknown): number {
  return Array.isArray(outcome) ? Number(outcome[0]) : assert.fail(`not created: ${JSON.stringify(outcome)}`)
}

async function eventsOf({ client }: Session, postId: number): Promise<readonly string[]> {
  const { rows } = await client.query('select kind from outbox where post_id = $1 order by id', [postId])
  return rows.map(({ kind }) => kind)
}
