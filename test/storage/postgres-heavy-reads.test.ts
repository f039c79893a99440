import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import pg from 'pg'
import { settings } from '../../src/config.ts'
import { AppError } from '../../src/core/errors.ts'
import type { SelectedField, Selection } from '../../src/core/selection.ts'
import { cutAfterMs } from '../../src/server/shutdown.ts'
import { bounds } from '../../src/storage/bounds.ts'
import { postgresDialect } from '../../src/storage/select/dialect.ts'
import { compileGuarded } from '../../src/storage/select/select.ts'
import { type Statement, sql } from '../../src/storage/sql.ts'
import { createStore } from '../../src/storage/store.ts'
import { timeoutsOf } from '../../src/storage/timeouts.ts'
import { actorOf, Stage, serviceOver, withMethods } from '../graphql/support/stage.ts'
import { type OpenOptions, postgres } from '../support/engines.ts'
import { waitUntil } from '../support/wait.ts'

const nested = '{ posts(limit: 10) { id content author { name } comments(limit: 10) { text author { name } } } }'

describe('A heavy read on PostgreSQL', { skip: postgres.skip }, () => {
  it('runs alone among those of its client, and beside one of another client', async () => {
    await using gated = await GatedStage.open({ poolMax: 24 }) // three heavy reads at a time
    const { engine } = gated.stage
    const first = [1, 2, 3].map(n => engine.read(gated.heavy(n, 'one')))
    const other = engine.read(gated.heavy(4, 'another'))
    await waitUntil(async () => (await gated.inside()) >= 2)
    for (let time = 0; time < 5; time++) await engine.read(sql`select 1`)
    assert.equal(await gated.inside(), 2)
    await gated.release()
    assert.deepEqual(await Promise.all([...first, other]), [[[1]], [[2]], [[3]], [[4]]])
  })

  it('is refused if too many wait, and of the client with the most', async () => {
    await using gated = await GatedStage.open()
    const { engine } = gated.stage
    let refused = 0
    const many = Array.from({ length: bounds.heavyReads.waiting + 3 }, (_, n) => engine.read(gated.heavy(n, 'busy')))
    for (const read of many) read.catch(() => refused++)
    await assertUnavailable(many.at(-1))
    const other = engine.read(gated.heavy(0, 'another'))
    assert.equal(refused, 2)
    await gated.release()
    assert.deepEqual(await other, [[0]])
    await Promise.allSettled(many)
  })

  it('has all its time from its turn on, however long it has waited', async () => {
    await using stage = await Stage.open(postgres, { timeouts: timeoutsOf(1500) })
    const slow = (n: number) => ({ ...sql`select pg_sleep(0.6), ${n}::int`, heavy: true, client: 'a client' })
    const outcomes = await Promise.all([1, 2, 3].map(n => stage.engine.read(slow(n))))
    assert.deepEqual(
      outcomes.map(([row]) => row?.[1]),
      [1, 2, 3],
    )
  })

  it('shares its rows with equal ones that wait', async () => {
    await using gated = await GatedStage.open()
    const { engine } = gated.stage
    const first = ['one', 'two'].map((client, n) => engine.read(gated.heavy(n + 10, client)))
    const equal = ['one', 'another', 'a third'].map(client => engine.read(gated.heavy(1, client)))
    const different = engine.read(gated.heavy(2, 'one'))
    await gated.release()
    const [one, ...others] = await Promise.all(equal)
    for (const rows of others) assert.equal(rows, one)
    assert.deepEqual([...(await Promise.all(first)), one, await different], [[[10]], [[11]], [[1]], [[2]]])
  })

  it('is refused when the engine closes while it waits', async () => {
    await using gated = await GatedStage.open()
    const { engine } = gated.stage
    const reads = [1, 2, 3].map(n => engine.read(gated.heavy(n, 'one')))
    const outcomes = Promise.allSettled(reads)
    await waitUntil(async () => (await gated.inside()) > 0)
    const closed = engine[Symbol.asyncDispose]()
    await gated.release()
    await closed
    const [first, ...waiting] = await outcomes
    assert.equal(first?.status, 'fulfilled')
    for (const { status } of waiting) assert.equal(status, 'rejected')
    await assertUnavailable(reads[1])
  })

  it('is answered before a server that stops closes its connection, however long it waits', () => {
    const { operation, heavyTurn } = timeoutsOf(Number(settings.DATABASE_TIMEOUT_MS.fallback))
    const first = 2 * operation // its turn among the reads of many texts, and the read that finds long ones
    assert.ok(first + heavyTurn + operation < cutAfterMs)
  })

  const { textBytes } = bounds.heavyReads
  const shapes: Readonly<Record<string, readonly [text: string, longest: number]>> = {
    'ten posts with ten comments each': [nested, Math.floor(textBytes / 110)],
    'ten posts': ['{ posts(limit: 10) { content } }', Math.floor(textBytes / 2 / 10)],
    'one post': ['{ posts(limit: 1) { content } }', 65_536],
  }
  for (const [shape, [text, longest]] of Object.entries(shapes)) {
    it(`is not one of ${shape} with texts of ${longest} bytes`, async () => {
      await using gated = await GatedStage.open()
      await insertPosts(gated.stage, 'x'.repeat(longest))
      const blocked = gated.stage.engine.read(gated.heavy(1, ''))
      const { posts } = JSON.parse(await serviceOver(gated.stage.engine)(text))
      for (const { content } of posts) assert.equal(content, 'x'.repeat(longest))
      await gated.release()
      await blocked
    })

    if (longest === 65_536) continue // no text is longer
    it(`is one of ${shape} with longer texts, and then nothing is left out`, async () => {
      await using gated = await GatedStage.open()
      const long = '"'.repeat(longest + 1)
      await insertPosts(gated.stage, long)
      const service = serviceOver(gated.stage.engine)
      const blocked = gated.stage.engine.read(gated.heavy(1, ''))
      let isAnswered = false
      const asked = service(text).finally(() => {
        isAnswered = true
      })
      for (let time = 0; time < 20; time++) await service(text.replaceAll(/content|text/g, 'id'))
      assert.equal(isAnswered, false, 'it waits for the heavy read before it')
      await gated.release()
      await blocked
      const { posts } = JSON.parse(await asked)
      assert.equal(posts.length, 10)
      for (const { content, comments = [] } of posts) {
        assert.equal(content, long)
        for (const { text } of comments) assert.equal(text, long)
      }
    })
  }

  it('returns texts of any length and character, also where the first try leaves some of them out', async () => {
    await using stage = await Stage.open(postgres)
    const { posts } = createStore(stage.engine)
    const most = Math.floor(bounds.heavyReads.textBytes / 2 / 10)
    const contents = [1, most - 1, most, most + 1, 60_000].map(length => '\u0001"\\\n'.repeat(length).slice(0, length))
    for (const content of contents) {
      await stage.engine.write('run', [sql`delete from posts`, sql`delete from users`])
      await insertPosts(stage, content, 0)
      const { posts: list } = JSON.parse(await posts.read(selectionOf(1), [10, 0]))
      assert.deepEqual(
        list,
        Array.from({ length: 10 }, () => ({ c0: content })),
      )
    }
  })

  it('stops writing its texts when they exceed the size of an answer', async () => {
    await using stage = await Stage.open(postgres)
    await insertPosts(stage, '"'.repeat(65_000), 0)
    const client = new pg.Client({ connectionString: stage.database.location })
    await client.connect()
    await using _ = { [Symbol.asyncDispose]: () => client.end() }
    const wide = selectionOf(20)
    const left = async (limit: number) => {
      await client.query('begin')
      const text = postgresDialect.bounded(compileGuarded(wide, postgresDialect))
      const { rows } = await client.query({ text, values: [limit, 0], rowMode: 'array' })
      const counted = await client.query({ text: "select current_setting('duet.left')::int", rowMode: 'array' })
      await client.query('rollback')
      return { answer: rows[0]?.[0], left: counted.rows[0]?.[0] }
    }
    const each = 2 * 65_000 + 2
    const one = await left(1)
    assert.equal(one.left, bounds.answerBytes - 20 * each)
    assert.equal(JSON.parse(one.answer).posts[0].c19, '"'.repeat(65_000))
    const ten = await left(10) // 200 texts, of which 64 fit
    assert.equal(ten.answer, null)
    assert.equal(ten.left, bounds.answerBytes - 65 * each)
  })
})

test('What a mutation shows on PostgreSQL is counted while it is written, if it has more than 50 texts', {
  skip: postgres.skip,
}, async () => {
  await using stage = await Stage.open(postgres)
  await insertPosts(stage, 'short', 0)
  const texts: string[] = []
  const engine = withMethods(stage.engine, {
    write(name, ...args) {
      texts.push(JSON.stringify(args))
      return stage.engine.write(name, ...args)
    },
  } as Partial<typeof stage.engine>)
  const post = { kind: 'one', key: 'post', name: 'post', id: 0, fields: [] } as const
  for (const count of [50, 51]) {
    const selection = { fields: [{ ...post, fields: contents(count) }] }
    const shown = { kind: 'like post', id: 1, show: { selection, values: [null], id: 0 } } as const
    const [answer = ''] = (await createStore(engine).posts.change(actorOf(1), [shown])) as readonly string[]
    assert.equal(Object.keys(JSON.parse(answer).post).length, count)
  }
  assert.deepEqual(
    texts.map(text => text.includes('duet.left')),
    [false, true],
  )
})

/** A database in which heavy reads can be held until `release`. */
class GatedStage implements AsyncDisposable {
  readonly stage: Stage
  readonly #admin: pg.Client

  static async open(options?: OpenOptions): Promise<GatedStage> {
    const stage = await Stage.open(postgres, options)
    const admin = new pg.Client({ connectionString: stage.database.location })
    await admin.connect()
    await admin.query('select pg_advisory_lock(1)')
    return new GatedStage(stage, admin)
  }

  private constructor(stage: Stage, admin: pg.Client) {
    this.stage = stage
    this.#admin = admin
  }

  heavy(n: number, client: string): Statement {
    // Waits for the lock without its usual timeout.
    const { text, values } = sql`select case when set_config('lock_timeout', '0', true) = '0'
      then (select ${n}::int from pg_advisory_xact_lock_shared(1)) end`
    return { text, values, heavy: true, client }
  }

  /** How many heavy reads PostgreSQL has been given. */
  async inside(): Promise<number> {
    const { rows } = await this.#admin.query(
      `select count(*)::int as count from pg_locks where locktype = 'advisory' and not granted
       and database = (select oid from pg_database where datname = current_database())`,
    )
    return rows[0].count
  }

  async release(): Promise<void> {
    await this.#admin.query('select pg_advisory_unlock_all()')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#admin.end()
    await this.stage[Symbol.asyncDispose]()
  }
}

function contents(times: number): readonly SelectedField[] {
  return Array.from({ length: times }, (_, n) => ({ kind: 'value', key: `c${n}`, name: 'content' }))
}

/** The contents of a list of posts, so many times each. */
function selectionOf(times: number): Selection {
  const fields = contents(times)
  const whole = { after: undefined, publishedAfter: undefined, publishedBefore: undefined }
  return { fields: [{ kind: 'many', key: 'posts', name: 'posts', limit: 0, offset: 1, ...whole, fields }] }
}

/** Ten posts with so many comments each. */
async function insertPosts(stage: Stage, text: string, comments = 10): Promise<void> {
  const createdAt = '2026-01-31T12:00:00.000Z'
  const ten = Array.from({ length: 10 }, (_, n) => n + 1)
  await stage.insert({
    users: [{ id: 1, name: 'Ann', email: 'ann@example.com', createdAt }],
    posts: ten.map(id => ({ id, authorId: 1, title: 'Title', content: text, likes: 0, publishedAt: createdAt })),
    comments: ten.flatMap(postId =>
      Array.from({ length: comments }, (_, n) => ({ id: postId * 100 + n, postId, authorId: 1, text, createdAt })),
    ),
  })
}

async function assertUnavailable(read: Promise<unknown> | undefined): Promise<void> {
  await assert.rejects(read ?? Promise.resolve(), error => error instanceof AppError && error.code === 'unavailable')
}
