import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { PostgresPool } from '../../src/storage/postgres/pool.ts'
import { sql } from '../../src/storage/sql.ts'
import { timeoutsOf } from '../../src/storage/timeouts.ts'
import { postgres, type TestDatabase } from '../support/engines.ts'
import { testTimeoutMs, waitUntil } from '../support/wait.ts'

describe('A connection to PostgreSQL that breaks while the server still works for it', { skip: postgres.skip }, () => {
  const parts = new AsyncDisposableStack()
  let database: TestDatabase
  let admin: pg.Client
  before(async () => {
    database = parts.use(await postgres.create())
    await database.migrate()
    admin = new pg.Client({ connectionString: database.location })
    await admin.connect()
    parts.defer(() => admin.end())
  })
  after(() => parts.disposeAsync())

  it('never gives its slot to another one, which would have to wait for the row that the server holds', async () => {
    await using pool = openPool(database)
    const broken = await breakConnection(pool, admin)
    // Each session is kept until all have begun, so that each has a connection of its own.
    const beginSome = async (count: number): Promise<void> => {
      if (count === 0) return
      await pool.use(inAMinute(), async session => {
        assert.notEqual(session.slot.id, broken.slot)
        await session.begin({ isolation: undefined, events: false }, inAMinute())
        await beginSome(count - 1)
        await session.commit()
      })
    }
    await beginSome(3)
    assert.ok(await isAsleep(admin, broken.pid), 'the server was still at work all the time')
    await admin.query('select pg_terminate_backend($1)', [broken.pid])
  })
})

function openPool({ location }: TestDatabase): PostgresPool {
  const observer = { read() {}, write() {}, commit() {}, trouble() {} }
  let slots = 0
  const randomness = { id: () => `slot-${++slots}` }
  return new PostgresPool({ url: location, poolMax: 5, observer, randomness, timeouts: timeoutsOf(testTimeoutMs) })
}

/** A statement gets no answer in time; the server goes on with it, inside a transaction. */
function breakConnection(pool: PostgresPool, admin: pg.Client): Promise<{ slot: string; pid: number }> {
  return pool.use(inAMinute(), async session => {
    const [row] = await session.run(sql`select pg_backend_pid()`, inAMinute())
    const pid = Number(row?.[0])
    await session.begin({ isolation: undefined, events: false }, inAMinute())
    await assert.rejects(session.run(sql`select pg_sleep(50)`, performance.now()))
    assert.equal(session.broken, true)
    await waitUntil(() => isAsleep(admin, pid))
    return { slot: session.slot.id, pid }
  })
}

async function isAsleep(admin: pg.Client, pid: number): Promise<boolean> {
  const { rowCount } = await admin.query(
    `select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep' and backend_xid is not null`,
    [pid],
  )
  return rowCount === 1
}

function inAMinute(): number {
  return performance.now() + 60_000
}
