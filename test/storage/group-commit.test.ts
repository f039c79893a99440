import assert from 'node:assert/strict'
import { constants } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import { commitTogether, type Job, type Result } from '../../src/storage/sqlite/group-commit.ts'
import { sqlite } from '../support/engines.ts'
import { migrationsOf } from '../support/templates.ts'
import { notes, verbs } from './contract-verbs.ts'

describe('A batch in which a verb fails', () => {
  it('answers every job of the batch, also if the failing one joined late', async t => {
    const { connection, keys } = await prepared(t)
    const later = [[put(2)], [put(3), failing(4), put(5)], [put(6)]]
    const results = commitTogether(connection, verbs, [put(1)], () => later.shift() ?? [])
    assert.deepEqual(outcomes(results), [
      [1, 'put'],
      [2, 'put'],
      [3, 'put'],
      [4, 'fault'],
      [5, 'put'],
      [6, 'put'],
    ])
    assert.deepEqual(keys(), ['k1', 'k2', 'k3', 'k5', 'k6'])
  })

  it('answers every job of the batch if the commit also fails', async t => {
    const { connection, keys } = await prepared(t)
    const later = [[put(2)], [failing(3), orphan(4)]]
    const results = commitTogether(connection, verbs, [put(1)], () => later.shift() ?? [])
    assert.deepEqual(
      outcomes(results),
      [1, 2, 3, 4].map(id => [id, 'unavailable']),
    )
    assert.deepEqual(keys(), [])
  })
})

describe('A ROLLBACK that fails', () => {
  it('repeatedly rejects all jobs until it works, and then later writes succeed without the rejected changes', async t => {
    const { connection, keys, failRollbacks } = await prepared(t)
    failRollbacks(Number.POSITIVE_INFINITY)
    for (const jobs of [[put(1), failing(2)], [put(3)]]) {
      const results = commitTogether(connection, verbs, jobs, () => [])
      assert.deepEqual(
        outcomes(results),
        jobs.map(([id]) => [id, 'unavailable']),
      )
    }
    failRollbacks(0)
    assert.deepEqual(
      commitTogether(connection, verbs, [put(4)], () => []),
      [[4, 'put']],
    )
    assert.deepEqual(keys(), ['k4'])
  })
})

/** Each job's outcome, or the code of its error. */
function outcomes(results: readonly Result[]): readonly unknown[] {
  return results.map(([id, outcome, error]) => [id, outcome ?? error?.code])
}

function put(id: number): Job {
  return job(id, 'put', `k${id}`, 'v')
}

/** A job that writes something and then throws. */
function failing(id: number): Job {
  return job(id, 'putThenFail', `k${id}`)
}

/** A job that violates a foreign key which COMMIT checks, so that the verb itself succeeds. */
function orphan(id: number): Job {
  return job(id, 'run', [
    sql`pragma defer_foreign_keys = on`,
    sql`insert into order_items (order_id, name, quantity, price) values (4041, 'Nothing', 1, 1)`,
  ])
}

function job(id: number, verb: keyof typeof verbs, ...args: unknown[]): Job {
  return [id, verb, args as never[], 0]
}

async function prepared(t: TestContext) {
  const database = await sqlite.create()
  await database.migrate([...migrationsOf('sqlite'), notes])
  const connection = new SqliteConnection(database.location, 'write')
  const reader = new SqliteConnection(database.location, 'read')
  t.after(async () => {
    reader[Symbol.dispose]()
    connection[Symbol.dispose]()
    await database[Symbol.asyncDispose]()
  })
  return {
    connection,
    /** The committed rows. */
    keys: () => reader.run(sql`select key from notes order by key`).map(([key]) => key),
    /** Makes the next ROLLBACKs fail, this many. */
    failRollbacks(count: number) {
      let left = count
      connection.database.setAuthorizer((action, operation) =>
        action === constants.SQLITE_TRANSACTION && operation === 'ROLLBACK' && left-- > 0
          ? constants.SQLITE_DENY
          : constants.SQLITE_OK,
      )
    },
  }
}
