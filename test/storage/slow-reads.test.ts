import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { describe, it } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { AppError } from '../../src/core/errors.ts'
import { bounds } from '../../src/storage/bounds.ts'
import { type Statement, sql } from '../../src/storage/sql.ts'
import { createStore } from '../../src/storage/store.ts'
import { Stage, serviceOver, withMethods } from '../graphql/support/stage.ts'
import { sqlite } from '../support/engines.ts'
import { catalogue } from './contract-verbs.ts'

describe('A quick read on SQLite', () => {
  it('does not wait for earlier reads that were slow before', async () => {
    await using stage = await Stage.open(sqlite)
    for (const n of [0, 1]) await stage.engine.read(slow(n))
    const { finished, note } = notes()
    const reads = Array.from({ length: 4 }, (_, n) => note('slow', stage.engine.read(slow(n))))
    await note('quick', stage.engine.read(sql`select 1`))
    assert.deepEqual(finished, ['quick'])
    await Promise.all(reads)
    assert.equal(finished.length, 5)
  })

  it('does not wait for earlier reads of many rows', async () => {
    await using stage = await Stage.open(sqlite)
    const { finished, note } = notes()
    const reads = Array.from({ length: 4 }, (_, n) => note('heavy', stage.engine.read(heavy(n))))
    await note('quick', stage.engine.read(sql`select 4`))
    assert.deepEqual(finished, ['quick'])
    await Promise.allSettled(reads)
  })

  it('does not wait for earlier reads of long texts', async () => {
    await using stage = await Stage.open(sqlite)
    await insertLongPost(stage)
    const service = serviceOver(stage.engine)
    const { finished, note } = notes()
    const reads = Array.from({ length: 4 }, (_, n) => note('long', service(longTexts(n))))
    await note('quick', stage.engine.read(sql`select 4`))
    assert.deepEqual(finished, ['quick'])
    await Promise.allSettled(reads)
  })

  it('does not wait for all reads of another client that are each a little slow', async () => {
    await using stage = await Stage.open(sqlite)
    const { finished, note } = notes()
    const unknown = (n: number) => ({ ...slow(n), text: `${slow(n).text} -- ${n}`, client: 'busy' })
    const [first, ...others] = Array.from({ length: 10 }, (_, n) => note('slow', stage.engine.read(unknown(n))))
    await first
    await note('quick', stage.engine.read({ ...sql`select 1`, client: 'another' }))
    assert.ok(finished.length <= 3, finished.join())
    await Promise.all(others)
  })

  it('is distinguished from a heavy one by the rows of its selection, and its texts are counted', async () => {
    await using stage = await Stage.open(sqlite)
    const seen: unknown[] = []
    const engine = withMethods(stage.engine, {
      readText(statement) {
        seen.push([statement.heavy, statement.longTexts, statement.client])
        return stage.engine.readText(statement)
      },
    })
    const { posts } = createStore(engine)
    const list = { kind: 'many', key: 'posts', name: 'posts', limit: 0, offset: 1 } as const
    const content = { kind: 'value', key: 'content', name: 'content' } as const
    const selection = {
      fields: [{ ...list, after: undefined, publishedAfter: undefined, publishedBefore: undefined, fields: [content] }],
    }
    for (const values of [
      [10, 0],
      [900, 0],
      [1, 100_000],
    ])
      await posts.read(selection, values, 'a client')
    assert.deepEqual(seen, [
      [false, 10, 'a client'],
      [false, 900, 'a client'],
      [true, 1, 'a client'],
    ])
  })
})

describe('A heavy read on SQLite', () => {
  it('leaves the event loop free, because it runs in another thread', async () => {
    await using stage = await Stage.open(sqlite)
    await stage.engine.read(heavy(0)) // starts the thread
    assert.ok((await turnsDuring(() => stage.engine.read({ ...slow(0), heavy: true }))) > 20)
    await insertLongPost(stage)
    const service = serviceOver(stage.engine)
    assert.ok((await turnsDuring(() => service(longTexts(0)))) > 20)
  })

  it('is not one with many texts that are short', async () => {
    await using stage = await Stage.open(sqlite)
    await stage.insert({ users: [author], posts: [{ ...post, content: 'short' }], comments: [] })
    await Promise.all(started.splice(0).map(worker => worker.terminate()))
    const fields = 'id title content author { name } comments(limit: 10) { text author { name } }'
    await serviceOver(stage.engine)(`{ posts(limit: 10) { ${fields} } }`)
    assert.equal(started.length, 0)
  })

  it('returns the same answer as on the thread that serves', async () => {
    await using stage = await Stage.open(sqlite)
    await insertLongPost(stage)
    const service = serviceOver(stage.engine)
    const aliases = Array.from({ length: 20 }, (_, n) => `c${n}`)
    const expected = Object.fromEntries(aliases.map(alias => [alias, escaped]))
    const answer = await service(`{ post(id: 1) { ${aliases.map(alias => `${alias}: content`).join(' ')} } }`)
    assert.deepEqual(JSON.parse(answer), { post: expected })
  })

  it('does not wait for all heavy reads of another client', async () => {
    await using stage = await Stage.open(sqlite)
    const { finished, note } = notes()
    const many = Array.from({ length: 8 }, (_, n) =>
      note('many', stage.engine.read({ ...heavy(n), client: 'one with many' })),
    )
    await note('single', stage.engine.read({ ...heavy(21), client: 'another' }))
    assert.ok(finished.length <= 4, finished.join())
    await Promise.allSettled(many) // on a busy machine some of them wait too long
  })

  it('sees every write that was acknowledged before it was requested', async () => {
    await using stage = await Stage.open(sqlite)
    await stage.engine.read(heavy(0)) // starts the thread
    const { text, values } = slow(200_000)
    const counting = { text: text.replace('count(*)', '(select next from counters), count(*)'), values, heavy: true }
    for (const next of [1000, 1001]) {
      const before = stage.engine.read(counting) // still runs when the same read is requested again
      await stage.engine.write('run', [sql`update counters set next = ${next}`])
      assert.equal((await stage.engine.read(counting))[0]?.[0], next)
      await before
    }
  })

  it('shares its rows with equal ones that wait', async () => {
    await using stage = await Stage.open(sqlite)
    const first = stage.engine.read(heavy(0))
    const equal = await Promise.all([1, 1, 1].map(n => stage.engine.read({ ...heavy(n), client: `client ${n}` })))
    await first
    assert.equal(equal[0], equal[1])
    assert.equal(equal[0], equal[2])
  })

  it('is refused if too many wait', async () => {
    await using stage = await Stage.open(sqlite)
    const outcomes = await Promise.allSettled(
      Array.from({ length: bounds.heavyReads.waiting + 3 }, (_, n) => stage.engine.read(light(n))),
    )
    const refused = outcomes.filter(({ status }) => status === 'rejected')
    assert.equal(refused.length, 2)
    for (const { reason } of refused as PromiseRejectedResult[]) assertUnavailable(reason)
  })

  it('is answered or refused when the engine closes', async () => {
    await using database = await sqlite.create()
    const engine = database.open(catalogue)
    const reads = Array.from({ length: 5 }, (_, n) => engine.read(heavy(n)))
    await reads[0]
    const outcomes = Promise.allSettled(reads)
    await engine[Symbol.asyncDispose]()
    for (const outcome of await outcomes) if (outcome.status === 'rejected') assertUnavailable(outcome.reason)
    await assert.rejects(engine.read(heavy(0)), error => assertUnavailable(error) ?? true)
    assert.ok(!existsSync(`${database.location}-wal`), 'its connection was closed before the last one')
  })

  it('is refused if its thread dies, and the next one starts another thread', async () => {
    await using stage = await Stage.open(sqlite)
    await stage.engine.read(heavy(0))
    const reads = [stage.engine.read(heavy(1)), stage.engine.read(heavy(2))]
    await Promise.all(started.splice(0).map(worker => worker.terminate()))
    const [first, second] = await Promise.allSettled(reads)
    assert.ok(first?.status === 'rejected')
    assertUnavailable(first.reason)
    assert.equal(second?.status, 'fulfilled')
    assert.equal(started.length, 1)
  })
})

/** The threads of heavy reads. */
const started: Worker[] = []
process.on('worker', worker => {
  if (worker.threadName === 'heavy reads') started.push(worker)
})

/** Takes some tens of milliseconds; different numbers are different reads. */
function slow(n: number): Statement {
  return sql`with recursive numbers(i) as (select 1 union all select i + 1 from numbers where i < ${100_000 + n})
             select count(*) from numbers`
}

function heavy(n: number): Statement {
  return { ...slow(n), heavy: true }
}

/** Counts as heavy and takes no time. */
function light(n: number): Statement {
  return { ...sql`select ${n}`, heavy: true }
}

/** Characters that JSON writes as six. */
const escaped = '\u0001"""""""""'.repeat(6_000)
const createdAt = '2026-01-31T12:00:00.000Z'
const author = { id: 1, name: 'Ann', email: 'ann@example.com', createdAt }
const post = { id: 1, authorId: 1, title: 'Title', content: escaped, likes: 0, publishedAt: createdAt }

async function insertLongPost(stage: Stage): Promise<void> {
  await stage.insert({ users: [author], posts: [post], comments: [] })
}

/** A query whose text is new for each number. */
function longTexts(n: number): string {
  return `{ post(id: 1) { ${Array.from({ length: 50 }, (_, at) => `c${n}_${at}: content`).join(' ')} } }`
}

function notes() {
  const finished: string[] = []
  const note = async (what: string, read: Promise<unknown>) => {
    await read
    finished.push(what)
  }
  return { finished, note }
}

/** How often the event loop turns while something is done. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let going = true
  const count = () => {
    turns++
    if (going) setImmediate(count)
  }
  setImmediate(count)
  await work()
  going = false
  return turns
}

function assertUnavailable(error: unknown): void {
  assert.ok(error instanceof AppError && error.code === 'unavailable', String(error))
}
