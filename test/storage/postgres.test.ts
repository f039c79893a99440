import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import pg from 'pg'
import { readConfig } from '../../src/config.ts'
import { isOutage } from '../../src/core/errors.ts'
import { bounds } from '../../src/storage/bounds.ts'
import type { Engine } from '../../src/storage/engine.ts'
import { failureOf, postgresError } from '../../src/storage/postgres/errors.ts'
import { sql } from '../../src/storage/sql.ts'
import { timeoutsOf } from '../../src/storage/timeouts.ts'
import { execute } from '../faults/execute.ts'
import { Wire } from '../faults/wire.ts'
import { startTestAppOn } from '../support/app.ts'
import { type OpenOptions, postgres, postgresAt } from '../support/engines.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { runDuet } from '../support/process.ts'
import { atOnce, newKey, pay, send, somebody, tally } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { dropPostgresDatabase, executeOn, migrationsOf } from '../support/templates.ts'
import { testTimeoutMs, waitUntil, within } from '../support/wait.ts'
import { catalogue, type verbs } from './contract-verbs.ts'
import { databaseWithNotes, openNotes } from './notes.ts'
import { connectTo } from './transaction.ts'

it('a connection error to PostgreSQL is treated as an outage, also if its system error code has five letters', () => {
  for (const code of ['EPIPE', 'ECONNRESET', 'ECONNREFUSED', 'EBADF']) {
    const error = Object.assign(new Error('write failed'), { code, syscall: 'write' })
    assert.equal(failureOf(error), 'lost', code)
    assert.ok(isOutage(postgresError(error)), code)
  }
  for (const code of ['42P01', 'XX000', 'P0001'])
    assert.equal(failureOf(Object.assign(new Error(''), { code })), 'defect', code)
})

describe('The PostgreSQL engine', { skip: postgres.skip }, () => {
  const database = shared(() => databaseWithNotes(postgres))
  beforeEach(() => executeOn(database.location, 'delete from notes'))

  const open = (options?: OpenOptions): Engine<typeof verbs> => database.open(catalogue, options)

  /** An engine, and a proxy between it and PostgreSQL. */
  async function throughProxy(t: TestContext, options?: OpenOptions) {
    const proxy = await Wire.to(new URL(database.location))
    const engine: Engine<typeof verbs> = postgresAt(proxy.through(database.location)).open(catalogue, options)
    t.after(() => engine[Symbol.asyncDispose]())
    t.after(() => proxy[Symbol.asyncDispose]())
    return { engine, proxy }
  }

  for (const [stored, moment] of (['cut before', 'cut after'] as const).entries()) {
    it(`says that the outcome is unknown if the connection is ${moment} the commit passes, and works on`, async t => {
      const { engine, proxy } = await throughProxy(t, { poolMax: 1 })
      await engine.write('put', 'counter', '0')
      let cuts = 0
      proxy.fromClient = data => (data.includes('commit\0') && cuts++ === 0 ? moment : 'pass')
      const message = 'The outcome is unknown. Read before you repeat, or repeat with the same Idempotency-Key.'
      await assert.rejects(engine.write('increment', 'counter'), { code: 'unavailable', message })
      await waitUntil(async () => String(await engine.read(sql`select value from notes`)) === String(stored))
      assert.equal(await engine.write('increment', 'counter'), stored + 1)
    })
  }

  it('runs a verb again on another connection if its connection is dead', async () => {
    await using engine = open({ poolMax: 1 })
    await engine.write('put', 'a', '1')
    await disconnect(database.location)
    assert.equal(await engine.write('increment', 'a'), 2)
    await disconnect(database.location)
    assert.equal(await engine.write('putUnread', ['b']), 'put')
  })

  it('waits for a connection in use while PostgreSQL gives it fewer than it may have, and refuses nothing', async t => {
    await using role = await roleFor(database.location, 2)
    await using engine = postgresAt(role.url).open(catalogue)
    const sleep = sql`select pg_backend_pid() from pg_sleep(0.005)`
    const connections = async () => {
      const answers = await Promise.all(Array.from({ length: 40 }, () => engine.read(sleep)))
      return new Set(answers.flat(2)).size
    }
    assert.equal(await connections(), 2)
    await role.allow(10)
    const later = performance.now.bind(performance)
    t.mock.method(performance, 'now', () => later() + 6_000) // it tries again after five seconds
    const asked = connections()
    assert.ok(Number(engine.poolUse?.inUse()) > 2, 'further ones are being opened')
    await asked
  })

  it('refuses in time while other programs have all connections, and works when one is free again', async () => {
    await using role = await roleFor(database.location, 1)
    await using other = await connectTo(role.url)
    {
      await using hasty = postgresAt(role.url).open(catalogue, { timeouts: timeoutsOf(200) })
      await answersUnavailable(hasty.read(sql`select 1`))
      assert.equal(hasty.poolUse?.waiting(), 0, 'a connection would be lost to whom it is lent now')
    }
    await using engine = postgresAt(role.url).open(catalogue, { timeouts: timeoutsOf(20_000) })
    const patient = Promise.all([engine.read(sql`select 1`), engine.read(sql`select 2`)])
    await Promise.race([patient, waitUntil(() => engine.poolUse?.inUse() === 0)])
    await other.end()
    assert.deepEqual(await patient, [[[1]], [[2]]])
  })

  it('has all its connections again after connecting has failed more often than it may have connections', async t => {
    const { engine, proxy } = await throughProxy(t, { poolMax: 3 })
    proxy.fromClient = () => 'cut before'
    await Promise.all(Array.from({ length: 10 }, () => answersUnavailable(engine.read(sql`select 1`))))
    proxy.fromClient = () => 'pass'
    const sleep = sql`select pg_backend_pid() from pg_sleep(0.05)`
    const answers = await Promise.all(Array.from({ length: 30 }, () => engine.read(sleep)))
    assert.equal(new Set(answers.flat(2)).size, 3)
  })

  it('closes connections that were idle for two minutes, and keeps one that is used', async t => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { mock } = t.mock.method(pg.Client.prototype, 'end')
    await using engine = open()
    const reads = Array.from({ length: 5 }, () => engine.read(sql`select pg_sleep(0.05)`))
    assert.equal(engine.poolUse?.inUse(), 5)
    await Promise.all(reads)
    for (let minute = 0; minute < 2; minute++) {
      t.mock.timers.tick(60_000)
      await engine.read(sql`select 1`)
    }
    assert.equal(mock.callCount(), 4)
  })

  it('lets PostgreSQL end a transaction whose client has disappeared, with or without a pooler', async () => {
    for (const pooler of [false, true]) {
      await using engine = database.open(catalogue, { pooler })
      const shown = sql`select setting from pg_settings where name = 'idle_in_transaction_session_timeout'`
      const set = String(testTimeoutMs * 2)
      assert.deepEqual(await engine.write('run', [shown]), [[[set]]])
      assert.deepEqual(await engine.read(shown), [[pooler ? '0' : set]], 'a pooler lends the connection to others next')
    }
  })

  it('continues if a migration changed the result type of a prepared statement, or the statement is gone', async () => {
    await using own = await openNotes(postgres, { poolMax: 1 })
    const { engine } = own
    await engine.write('put', 'a', '1')
    const read = () => engine.read(sql`select * from notes where key = 'a'`)
    for (let use = 0; use < 3; use++) await read()
    await executeOn(own.database.location, 'alter table notes add column more integer')
    for (let use = 0; use < 3; use++) assert.deepEqual(await read(), [['a', '1', null]])
    await engine.read(sql`deallocate all`)
    assert.deepEqual(await read(), [['a', '1', null]])
  })

  it('takes an answer that came in time, if this thread was too busy to read it', async () => {
    await using engine = open({ poolMax: 1, timeouts: timeoutsOf(200) })
    await engine.read(sql`select 1`)
    const reading = engine.read(sql`select 2`)
    await turn()
    for (const end = performance.now() + 300; performance.now() < end; );
    assert.deepEqual(await reading, [[2]])
  })

  it('keeps running and notifies its observer if idle connections are lost', async () => {
    const troubles: string[] = []
    await using engine = open({ observer: { trouble: message => troubles.push(message) } })
    await Promise.all(Array.from({ length: 5 }, () => engine.read(sql`select pg_sleep(0.01)`)))
    const ended = await disconnect(database.location)
    assert.ok(ended > 0)
    await waitUntil(() => troubles.length === ended)
    await engine.write('put', 'after', 'v')
  })

  it('keeps a limited number of prepared statements per connection, named from their second use on', async () => {
    await using engine = open({ poolMax: 1 })
    const count = async () => Number((await engine.read(sql`select count(*) from pg_prepared_statements`))[0]?.[0])
    for (let index = 0; index < 100; index++) await engine.read({ text: `select ${index}`, values: [] })
    assert.equal(await count(), 0)
    for (let index = 0; index < bounds.statements + 100; index++)
      for (let use = 0; use < 2; use++)
        assert.deepEqual(await engine.read({ text: `select ${index}, 'x'`, values: [] }), [[index, 'x']])
    const kept = await count()
    assert.ok(kept > 0 && kept <= bounds.statements, `${kept} statements are prepared`)
  })

  it('opens a new connection after many long statements, also for those who wait, but not to a pooler, where no statement is prepared', async () => {
    for (const pooler of [true, false]) {
      await using engine = open({ poolMax: 1, pooler, timeouts: timeoutsOf(20_000) })
      const backend = async () => (await engine.read(sql`select pg_backend_pid()`))[0]?.[0]
      const before = await backend()
      const read = (_: unknown, n: number) => engine.read({ text: `select ${n} -- ${'x'.repeat(1024)}`, values: [] })
      await Promise.all(Array.from({ length: bounds.statementText.postgres / 1024 + 1 }, read))
      assert.equal((await backend()) === before, pooler)
    }
  })

  it('sends few messages: the beginning with the first statements, and the commit with the last ones', async t => {
    const { engine, proxy } = await throughProxy(t, { poolMax: 1 })
    const sent = async (work: () => Promise<unknown>) => {
      let pieces = 0
      proxy.fromClient = () => {
        pieces++
        return 'pass'
      }
      await work()
      return pieces
    }
    await engine.write('put', 'a', '1')
    assert.equal(await sent(() => engine.read(sql`select value from notes where key = 'a'`)), 1)
    assert.equal(await sent(() => engine.write('put', 'a', '2')), 2)
    assert.equal(await sent(() => engine.write('increment', 'a')), 3)
    assert.equal(await sent(() => engine.write('putNext', 'b', 'c')), 3)
    assert.equal(await sent(() => engine.write('putUnread', ['d', 'e'])), 2)
  })

  it('answers 503 in time while the database hangs, and recovers', async t => {
    const { engine, proxy } = await throughProxy(t, { timeouts: impatient })
    await engine.ping()
    proxy.fromClient = () => 'keep'
    const ask = (at: number) => (at % 2 === 0 ? engine.read(sql`select 1`) : engine.write('put', `h${at}`, 'v'))
    await Promise.all(Array.from({ length: 30 }, (_, at) => answersUnavailable(ask(at))))
    proxy.fromClient = () => 'pass'
    await recovered(engine)
  })

  it('uses at most four fifths of its connections for writes that wait for a lock, and continues reading', async () => {
    await using engine = open({ poolMax: 5, timeouts: impatient })
    await engine.write('put', 'locked', '1')
    await using other = await connectTo(database.location)
    await other.query(`begin; select * from notes where key = 'locked' for update`)
    await using watcher = await connectTo(database.location)
    let waiting = 50
    const writes = Array.from({ length: waiting }, () =>
      assert.rejects(engine.write('increment', 'locked'), isOutage).finally(() => waiting--),
    )
    let most = 0
    while (waiting > 0) {
      const { rows } = await watcher.query(`select count(*)::int as held from pg_stat_activity
        where application_name = 'duet' and datname = current_database() and wait_event_type = 'Lock'`)
      most = Math.max(most, rows[0].held)
      await engine.read(sql`select 1`)
    }
    await Promise.all(writes)
    await other.query('rollback')
    assert.ok(most > 0 && most <= 4, `${most} of 5 connections waited`)
    await recovered(engine)
    assert.equal(await engine.write('increment', 'locked'), 2)
  })

  it('rejects with 503 at once if too many operations wait for connections', async t => {
    const { engine, proxy } = await throughProxy(t, { poolMax: 1, timeouts: impatient })
    await engine.ping()
    proxy.fromClient = () => 'keep'
    let refused = 0
    const note = (error: unknown) => (isOutage(error) ? refused++ : assert.fail(String(error)))
    const asked = Array.from({ length: bounds.waiting + 50 }, () => engine.read(sql`select 1`).catch(note))
    await turn()
    assert.ok(refused >= 40 && refused <= 50, `${refused} were refused at once`)
    await Promise.all(asked)
    proxy.fromClient = () => 'pass'
    await recovered(engine)
  })
})

const nameIn = ({ location }: { location: string }) => new URL(location).pathname.slice(1)

describe('A database whose default isolation is serializable', { skip: postgres.skip }, () => {
  const create = async () => {
    const database = await postgres.createEmpty()
    await execute(database, `alter database ${nameIn(database)} set default_transaction_isolation = 'serializable'`)
    return database
  }

  it('is migrated once when many instances start at the same moment', async () => {
    await using empty = await create()
    const runs = await Promise.all(Array.from({ length: 8 }, () => empty.migrate()))
    const effective = runs.filter(applied => applied.length > 0)
    assert.deepEqual(effective, [migrationsOf('postgres')])
  })

  it('is written to at read committed, so that writers wait for each other instead of failing', async () => {
    await using database = await create()
    await using engine = database.open(catalogue)
    const level = sql`select current_setting('default_transaction_isolation'), current_setting('transaction_isolation')`
    assert.deepEqual(await engine.write('run', [level]), [[['serializable', 'read committed']]])
  })
})

it('a database that is not encoded in UTF8 is refused with one line that names its encoding, and stays empty', {
  skip: postgres.skip,
}, async () => {
  await using database = await postgres.createEmpty()
  const url = `${database.location}_ascii`
  const name = `${nameIn(database)}_ascii`
  await execute(database, `create database ${name} encoding 'SQL_ASCII' template template0 lc_collate 'C' lc_ctype 'C'`)
  await using parts = new AsyncDisposableStack()
  parts.defer(() => dropPostgresDatabase(url))
  const env = { DATABASE_URL: url, TOKEN_KEYS: tokenKeys }
  const stderr = 'duet: DATABASE_URL: The database has the encoding SQL_ASCII. Create one with the encoding UTF8.\n'
  assert.deepEqual(await runDuet(['serve'], { env }), { code: 1, stdout: '', stderr })
  await using client = await connectTo(url)
  assert.equal((await client.query("select from pg_tables where schemaname = 'public'")).rowCount, 0)
})

it('a service on PostgreSQL is not ready while reads work but writes do not, and is ready again when writes work', {
  skip: postgres.skip,
}, async () => {
  await using app = await startTestAppOn(postgres, {})
  await using admin = await connectTo(app.database.location)
  const setReadOnly = async (value: 'on' | 'off') => {
    await admin.query(`alter database ${nameIn(app.database)} set default_transaction_read_only = ${value}`)
    await disconnect(app.database.location)
  }
  const isReady = async () => (await ask(`${app.url}/health/ready`)).status
  await setReadOnly('on')
  await waitUntil(async () => (await isReady()) === 503)
  assert.equal((await ask(`${app.url}/users`)).status, 200)
  assert.equal((await send(app, 'POST /users', somebody())).status, 503)
  await setReadOnly('off')
  await waitUntil(async () => (await isReady()) === 200)
})

it('of writes of one row, such as the likes of a post and the creations of users, two at most wait in PostgreSQL, and others pass', {
  skip: postgres.skip,
}, async () => {
  const patient = { DATABASE_TIMEOUT_MS: '20000', DEMO_DATA: 'true' }
  await using app = await startTestAppOn(postgres, { ...patient, DATABASE_POOL_MAX: '5' })
  await using holder = await connectTo(app.database.location)
  await using watcher = await connectTo(app.database.location)
  const waiting = `select from pg_stat_activity where application_name = 'duet' and datname = current_database()
                   and wait_event_type = 'Lock'`
  // After the timeout for a lock, one of them waits outside PostgreSQL for a moment before it tries again.
  const count = async () => (await watcher.query(waiting)).rowCount ?? 0
  const like = { query: 'mutation { likePost(id: 1) { likes } }' }
  for (const [row, write] of [
    ["counters where name = 'users'", () => send(app, 'POST /users', somebody())],
    ['posts where id = 1', () => send(app, 'POST /graphql', like)],
  ] as const) {
    await holder.query(`begin; select from ${row} for update`)
    const writes = atOnce(20, write)
    await waitUntil(async () => (await count()) === 2)
    // They need more connections than are left if all of the others wait in PostgreSQL.
    const others = await atOnce(4, () => pay(app, newKey()))
    assert.deepEqual(tally(others), { 201: 4 }, row)
    assert.ok((await count()) <= 2, row)
    await holder.query('rollback')
    assert.ok((await writes).every(({ status }) => status === 200 || status === 201))
  }
})

/** A role that may have so many connections. */
async function roleFor(location: string, connections: number) {
  const url = new URL(location)
  url.username = `few_${randomUUID().replaceAll('-', '')}`
  const admin = await connectTo(location)
  await admin.query(`create role ${url.username} login connection limit ${connections}`)
  return {
    url: url.href,
    allow: (most: number) => admin.query(`alter role ${url.username} connection limit ${most}`),
    async [Symbol.asyncDispose]() {
      await admin.query(`drop role ${url.username}`)
      await admin.end()
    },
  }
}

/** Ends the engine's connections, and returns their number. */
async function disconnect(url: string): Promise<number> {
  await using admin = await connectTo(url)
  const { rowCount } = await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity
                                          where datname = current_database() and application_name = 'duet'`)
  return rowCount ?? 0
}

/** A short timeout, for operations that cannot succeed. */
const impatient = timeoutsOf(1_000)

async function answersUnavailable(answer: Promise<unknown>): Promise<void> {
  await assert.rejects(within(answer, 'a refusal'), isOutage)
}

/** A busy machine may exceed the short timeout, so this tries again, as clients do. */
async function recovered(engine: Engine<typeof verbs>): Promise<void> {
  const failed = (error: unknown) => !isOutage(error) && assert.fail(String(error))
  await waitUntil(async () => (await engine.write('put', 'after', 'v').catch(failed)) === 'put')
}

it('the timeouts of the store are whole milliseconds, allow waiting for a lock more than once, and by default answer every request within two seconds', () => {
  const { databaseTimeoutMs } = readConfig({})
  for (const operation of [200, 333, databaseTimeoutMs, 60_000]) {
    const bounds = timeoutsOf(operation)
    for (const [name, ms] of Object.entries(bounds)) assert.ok(Number.isInteger(ms) && ms > 0, `${name} ${ms}`)
    assert.ok(bounds.begin + 2 * bounds.lock <= operation)
  }
  const { operation, commit } = timeoutsOf(databaseTimeoutMs)
  assert.ok(operation + commit < 2_000, 'also if the outcome of a commit is unknown')
})
