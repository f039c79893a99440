import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Statement, sql } from '../../src/storage/sql.ts'
import { createStore } from '../../src/storage/store.ts'
import { Stage, withMethods } from '../graphql/support/stage.ts'
import { sqlite } from '../support/engines.ts'
import { notInQuick } from '../support/form.ts'

describe('A quick read on SQLite', () => {
  it('does not wait for earlier reads that are known to be slow', { skip: notInQuick }, async () => {
    await using stage = await Stage.open(sqlite)
    await stage.engine.read(slow(0))
    const finished: string[] = []
    const note = (what: string) => async (read: Promise<unknown>) => {
      await read
      finished.push(what)
    }
    const reads = Array.from({ length: 10 }, (_, n) => note('slow')(stage.engine.read(slow(n))))
    await note('quick')(stage.engine.read(sql`select 1`))
    assert.equal(finished[0], 'quick')
    await Promise.all(reads)
    assert.equal(finished.length, 11)
  })

  it('does not wait for new reads with large selections', async () => {
    await using stage = await Stage.open(sqlite)
    const finished: string[] = []
    const read = async (what: string, statement: Statement) => {
      await stage.engine.read(statement)
      finished.push(what)
    }
    const reads = [1, 2, 3].map(n => read('heavy', { text: `select ${n}`, values: [], heavy: true }))
    await read('quick', sql`select 4`)
    assert.equal(finished[0], 'quick')
    await Promise.all(reads)
    finished.length = 0
    // They were fast, so the next time they run in order.
    await Promise.all([read('first', { text: 'select 1', values: [], heavy: true }), read('second', sql`select 4`)])
    assert.deepEqual(finished, ['first', 'second'])
  })

  it('shares its turn with one slow read at most', { skip: notInQuick }, async () => {
    await using stage = await Stage.open(sqlite)
    await stage.engine.read(slow(0))
    let turns = 0
    let going = true
    const count = () => {
      turns++
      if (going) setImmediate(count)
    }
    setImmediate(count)
    await Promise.all(Array.from({ length: 10 }, (_, n) => stage.engine.read(slow(n))))
    going = false
    assert.ok(turns >= 9, `ten slow reads took ${turns} turns`)
  })

  it('is distinguished from a large one by the limits and texts of its selection', async () => {
    await using stage = await Stage.open(sqlite)
    const seen: (boolean | undefined)[] = []
    const engine = withMethods(stage.engine, {
      readText(statement) {
        seen.push(statement.heavy)
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
      [1000, 0],
      [1, 100_000],
    ])
      await posts.read(selection, values)
    assert.deepEqual(seen, [false, true, true])
  })
})

/** A read of some tens of milliseconds. Different numbers make different reads. */
function slow(n: number): Statement {
  return sql`with recursive numbers(i) as (select 1 union all select i + 1 from numbers where i < ${200_000 + n})
             select count(*) from numbers`
}
