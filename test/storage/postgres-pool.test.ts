import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { isTooManyConnections } from '../../src/storage/postgres/errors.ts'
import { PostgresPool } from '../../src/storage/postgres/pool.ts'
import { sql } from '../../src/storage/sql.ts'
import { timeoutsOf } from '../../src/storage/timeouts.ts'
import { postgres, type TestDatabase } from '../support/engines.ts'
import { testTimeoutMs, waitUntil } from '../support/wait.ts'

describe('A broken connection whose statement PostgreSQL still executes', { skip: postgres.skip }, () => {
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

  it('does not pass on its commit slot, because another connection would have to wait for the locked row', async () => {
    await using pool = openPool(database)
    const broken = await breakConnection(pool, admin)
    // Each session is kept until all have begun, so that each has its own connection.
    const beginSome = async (count: number): Promise<void> => {
      if (count === 0) return
      await pool.use(inAMinute(), async session => {
        assert.notEqual(session.slot.id, broken.slot)
        session.begin(undefined, inAMinute())
        await beginSome(count - 1)
        await session.commit()
      })
    }
    await beginSome(3)
    assert.ok(await isAsleep(admin, broken.pid), 'the server executed the statement all the time')
    await admin.query('select pg_terminate_backend($1)', [broken.pid])
  })
})

describe('A transaction on PostgreSQL', { skip: postgres.skip }, () => {
  it('is ended by PostgreSQL when its client has disappeared, with or without a pooler', async () => {
    await using database = await postgres.create()
    const timeouts: unknown[] = []
    for (const pooler of [false, true]) {
      await using pool = openPool(database, pooler)
      await pool.use(inAMinute(), async session => {
        session.begin(undefined, inAMinute())
        const shown = sql`select setting from pg_settings where name = 'idle_in_transaction_session_timeout'`
        timeouts.push(...(await session.run(shown, inAMinute())).flat())
        await session.rollback()
      })
    }
    assert.deepEqual(timeouts, [String(testTimeoutMs * 2), String(testTimeoutMs * 2)])
  })
})

describe('A pool whose role may have fewer connections than the pool wants', { skip: postgres.skip }, () => {
  it('uses those that it gets: callers wait for a connection in use, and no call is rejected', async () => {
    await using database = await postgres.create()
    const role = `few_${randomUUID().replaceAll('-', '')}`
    const admin = new pg.Client({ connectionString: database.location })
    await admin.connect()
    await admin.query(`create role ${role} login connection limit 2`)
    const url = new URL(database.location)
    url.username = role
    try {
      await using pool = openPool({ ...database, location: url.href })
      let atOnce = 0
      let most = 0
      const work = () =>
        pool.use(inAMinute(), async session => {
          most = Math.max(most, ++atOnce)
          const [row] = await session.run(sql`select 1 from pg_sleep(0.005)`, inAMinute())
          atOnce--
          return row?.[0]
        })
      const answers = await Promise.all(Array.from({ length: 40 }, work))
      assert.deepEqual(new Set(answers), new Set([1]))
      assert.equal(most, 2)
    } finally {
      await admin.query(`drop role ${role}`)
      await admin.end()
    }
  })

  it('rejects calls in time when other clients have all connections, and works when one is free again', async () => {
    await using database = await postgres.create()
    const role = `none_${randomUUID().replaceAll('-', '')}`
    const admin = new pg.Client({ connectionString: database.location })
    await admin.connect()
    await admin.query(`create role ${role} login connection limit 1`)
    const url = new URL(database.location)
    url.username = role
    const other = new pg.Client({ connectionString: url.href })
    await other.connect()
    try {
      await using pool = openPool({ ...database, location: url.href })
      const run = (deadline: number) => pool.use(deadline, session => session.run(sql`select 1`, inAMinute()))
      await assert.rejects(run(performance.now() + 100), isTooManyConnections)
      const patient = run(inAMinute())
      await other.end()
      assert.deepEqual(await patient, [[1]])
    } finally {
      await admin.query(`drop role ${role}`)
      await admin.end()
    }
  })
})

function openPool({ location }: Pick<TestDatabase, 'location'>, pooler = false): PostgresPool {
  const observer = { read() {}, write() {}, commit() {}, trouble() {} }
  let slots = 0
  const randomness = { id: () => `slot-${++slots}` }
  return new PostgresPool({
    url: location,
    poolMax: 5,
    pooler,
    observer,
    randomness,
    timeouts: timeoutsOf(testTimeoutMs),
  })
}

/** A statement that gets no answer in time, while the server continues to execute it in a transaction. */
function breakConnection(pool: PostgresPool, admin: pg.Client): Promise<{ slot: string; pid: number }> {
  return pool.use(inAMinute(), async session => {
    const [row] = await session.run(sql`select pg_backend_pid()`, inAMinute())
    const pid = Number(row?.[0])
    session.begin(undefined, inAMinute())
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
