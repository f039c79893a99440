import assert from 'node:assert/strict'
import { existsSync, statSync, symlinkSync } from 'node:fs'
import { constants } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { MessagePort } from 'node:worker_threads'
import { isOutage } from '../../src/core/errors.ts'
import { during, Waits } from '../../src/lib/waits.ts'
import { bounds } from '../../src/storage/bounds.ts'
import { type Statement, sql } from '../../src/storage/sql.ts'
import { SqliteConnection, sqliteError } from '../../src/storage/sqlite/connection.ts'
import { SqliteEngine } from '../../src/storage/sqlite/engine.ts'
import { checkVersion, claimSqliteFile } from '../../src/storage/sqlite/file.ts'
import { commitTogether, type Job } from '../../src/storage/sqlite/group-commit.ts'
import { SqliteWriter } from '../../src/storage/sqlite/writer.ts'
import { WriterWorker } from '../../src/storage/sqlite/writer-worker.ts'
import { timeoutsOf } from '../../src/storage/timeouts.ts'
import { type OpenOptions, sqlite } from '../support/engines.ts'
import { serveDuet } from '../support/process.ts'
import { shared } from '../support/shared.ts'
import { atEachTurn, testTimeoutMs, waitUntil, within } from '../support/wait.ts'
import { catalogue, verbs as testVerbs } from './contract-verbs.ts'
import { databaseWithNotes, type Notes, openNotes } from './notes.ts'

describe('Group commit', () => {
  it('lets verbs that arrive together share one commit, from whichever threads, and tells their number once; threads also share the memory for pages', async () => {
    await using database = await databaseWithNotes(sqlite)
    const commits: number[] = []
    const observer = { read() {}, write() {}, commit: (verbs: number) => void commits.push(verbs), trouble() {} }
    const timeouts = timeoutsOf(testTimeoutMs)
    const data = { path: database.location, catalogueUrl: catalogue.url, busyMs: timeouts.operation }
    await using worker = new WriterWorker(data, assert.fail)
    const shared = { threads: 2, connect: (port: MessagePort) => worker.connect(port) }
    const options = { catalogue, clock: { now: Date.now }, observer, timeouts }
    await using one = new SqliteEngine(database.location, options, shared)
    await using other = new SqliteEngine(database.location, options, shared)
    await Promise.all([one.ping(), other.ping()])
    commits.length = 0
    const slow = one.write('hang', 'slow', 200)
    await new Promise(setImmediate) // it is sent alone
    const puts = Array.from({ length: 64 }, (_, at) => (at % 2 === 0 ? one : other).write('put', `k${at}`, 'v'))
    await Promise.all([slow, ...puts])
    const told = `the commits had ${commits} verbs`
    const all = commits.reduce((sum, verbs) => sum + verbs, 0)
    assert.equal(all, 65, told)
    // On a busy machine some of them come too late for the first transaction.
    assert.ok(commits.length <= 4, told)
    assert.deepEqual(await one.read(sql`pragma cache_size`), [[-32_768]], 'KiB')
  })

  it('does not let verbs that arrive later wait for a transaction that takes long, and commits all of them before it closes', async () => {
    const commits: number[] = []
    await using database = await databaseWithNotes(sqlite)
    const engine = database.open(catalogue, { observer: { commit: verbs => commits.push(verbs) } })
    await engine.ping()
    commits.length = 0
    const write = (_: unknown, at: number) =>
      at % 16 === 0 ? engine.write('hang', `slow ${at}`, 100) : engine.write('put', `k${at}`, 'v')
    const written = Promise.all(Array.from({ length: 36 }, write))
    const closed = engine[Symbol.asyncDispose]()
    await within(written, 'the last commit')
    await closed
    assert.deepEqual(commits, [4, 16, 16])
  })

  it('gives others a turn of the event loop after each long result of a commit, and loses none if it closes', async () => {
    await using database = await databaseWithNotes(sqlite)
    const engine = database.open(catalogue)
    await engine.ping()
    let done = 0
    const text = '"'.repeat(70_000)
    const write = async () => {
      assert.deepEqual(await engine.write('echo', text, { list: [] }), { value: text, all: { list: [] } })
      done++
    }
    const written = Promise.all(Array.from({ length: 6 }, write)) // if this machine is busy, in several commits
    const counts = atEachTurn(
      () => done,
      () => written,
    )
    await engine[Symbol.asyncDispose]()
    assert.deepEqual(await counts, [1, 2, 3, 4, 5, 6])
  })

  it('rejects all verbs of a commit with 503 if an error rolled back the whole transaction, and keeps nothing', async t => {
    const { engine } = await prepared(t)
    await engine.ping()
    const outcomes = await Promise.allSettled([
      engine.write('put', 'before', 'v'),
      engine.write('undoEverything'),
      engine.write('put', 'after', 'v'),
    ])
    for (const outcome of outcomes) assert.ok(outcome.status === 'rejected' && isOutage(outcome.reason))
    assert.deepEqual(await engine.read(sql`select key from notes`), [])
    await engine.write('put', 'later', 'v')
  })

  it('says that the outcome of writes is unknown whenever the disk hangs or the writer thread ends, and continues with a new thread', async t => {
    const { engine } = await prepared(t, { timeouts: timeoutsOf(20), observer: { trouble() {} } })
    const kept = async () => (await engine.read(sql`select key from notes order by key`)).flat()
    for (const late of ['late 1', 'late 2']) {
      await assert.rejects(engine.write('hang', late, 700), isUnknown)
      await assert.rejects(engine.write('put', 'refused at once', 'v'), error => isOutage(error) && !isUnknown(error))
      await waitUntil(async () => (await engine.ping().then(kept, () => [''])).includes(late))
      const outcomes = await Promise.allSettled([engine.write('put', 'lost', 'v'), engine.write('endThread')])
      for (const outcome of outcomes) assert.ok(outcome.status === 'rejected' && isUnknown(outcome.reason))
      await waitUntil(async () => (await engine.write('put', 'next', 'v').catch(() => undefined)) === 'put')
    }
    assert.deepEqual(await kept(), ['late 1', 'late 2', 'next'])
  })

  it('does not execute a verb later that was rejected before it was sent, because the writer thread ended', async t => {
    const { writer, ports } = writerAlone(t)
    const errors: unknown[] = []
    ports[0]?.close()
    while (errors.length === 0) {
      writer.submit('put', ['a', 'v']).catch(error => errors.push(error))
      await new Promise(setImmediate)
    }
    assert.ok(errors.every(isUnknown))
    await new Promise(setImmediate)
    assert.equal(ports.length, 1, 'a new thread got the last one')
  })

  it('accepts writes again with the first answer of a disk that hung', async t => {
    const { writer, ports } = writerAlone(t, { ...timeoutsOf(20), operation: 500 })
    const answer = (id: number) => {
      ports[0]?.postMessage(JSON.stringify({ verbs: 1, results: [[id, 'late']], runMs: 0, commitMs: 0 }))
    }
    await assert.rejects(writer.submit('put', ['a', 'v']), isUnknown)
    await assert.rejects(writer.submit('put', ['b', 'v']), error => isOutage(error) && !isUnknown(error))
    answer(1)
    for (let turns = 0; turns < 20; turns++) await turn()
    const next = writer.submit('put', ['c', 'v']).catch(String)
    answer(2)
    assert.equal(await next, 'late')
  })

  it('lets no verb have waited before it was asked for, also if it joins a transaction that has begun earlier', async t => {
    const { writer, ports } = writerAlone(t)
    const told: [kind: string, since: number, until: number][] = []
    const add = (kind: string, since: number, until: number) => void told.push([kind, since, until])
    const asked = performance.now()
    const put = during(new Waits({ traceparent: '', add, end() {} }), () => writer.submit('put', ['a', 'v']))
    ports[0]?.postMessage(JSON.stringify({ verbs: 2, results: [[1, 'put']], runMs: 60_000, commitMs: 0 }))
    assert.equal(await put, 'put')
    const kinds = told.map(([kind]) => kind)
    assert.deepEqual(kinds, ['queue', 'statement', 'commit'])
    for (const [kind, since, until] of told) assert.ok(asked <= since && since <= until, kind)
  })
})

describe('A batch of verbs', () => {
  it('answers every job if the commit also fails, and keeps nothing', async t => {
    const { commit, keys } = await batches(t)
    assert.deepEqual(commit([put(1)], [put(2)], [failing(3), orphan(4)]), unavailable(1, 2, 3, 4))
    assert.deepEqual(keys(), [])
  })

  it('whose ROLLBACK fails is rejected until it works, and then later writes succeed without the rejected changes', async t => {
    const { commit, keys, connection } = await batches(t)
    connection.database.setAuthorizer((action, operation) =>
      action === constants.SQLITE_TRANSACTION && operation === 'ROLLBACK' ? constants.SQLITE_DENY : constants.SQLITE_OK,
    )
    assert.deepEqual(commit([put(1), failing(2)]), unavailable(1, 2))
    assert.deepEqual(commit([put(3)]), unavailable(3))
    connection.database.setAuthorizer(null)
    assert.deepEqual(commit([put(4)]), [[4, 'put']])
    assert.deepEqual(keys(), ['k4'])
  })

  it('gives every verb its own time, also if it runs a second time', async t => {
    const { commit } = await batches(t)
    const times = ['2030-01-01T00:00:00.000Z', '2031-01-01T00:00:00.000Z']
    const jobs = times.map((time, id): Job => [id, 'run', [[sql`select now_plus(0)`]] as never[], Date.parse(time)])
    const results = commit([...jobs, failing(2)])
    assert.deepEqual(results, [...times.map((time, id) => [id, [[[time]]]]), [2, 'fault']])
  })

  it('is rejected as a whole, with all that wait, if another process keeps the file locked', async t => {
    const { commit, database } = await batches(t, 1)
    using other = new SqliteConnection(database.location, 'write')
    other.database.exec('begin immediate')
    assert.deepEqual(commit([put(1)], [put(2), put(3)], [put(4)]), unavailable(1, 2, 3, 4))
    other.database.exec('rollback')
    assert.deepEqual(commit([put(5)]), [[5, 'put']])
  })
})

it('a statement of a connection is prepared at its first two uses, and kept from then on, unless there are too many', async t => {
  await using database = await sqlite.create()
  using connection = new SqliteConnection(database.location, 'read')
  const { mock } = t.mock.method(connection.database, 'prepare')
  for (const prepared of [1, 2, 2, 2]) {
    assert.deepEqual(connection.run(sql`select 1`), [[1]])
    assert.equal(mock.callCount(), prepared)
  }
  for (let index = 0; index < 2 * bounds.statements + 100; index++) {
    const number = index % (bounds.statements + 50) // more than are kept
    assert.deepEqual(connection.run({ text: `select ${number}`, values: [] }), [[number]])
  }
})

describe('Reads of one turn of the event loop', () => {
  const notes = shared(() => openNotes(sqlite))

  it('run once for equal statements, unless the bytes are to be freed, and again in the next turn', async () => {
    const { engine } = notes
    await engine.write('put', 'a', 'old')
    const noteOf = (key: string) => engine.read(sql`select value from notes where key = ${key}`)
    const [first, second, other] = await Promise.all([noteOf('a'), noteOf('a'), noteOf('b')])
    assert.deepEqual([first, other], [[['old']], []])
    assert.equal(second, first, 'read twice')
    assert.notEqual(await noteOf('a'), first)
    const bytes = async (own?: boolean) => (await engine.read({ ...sql`select x'61'`, ...(own && { own }) }))[0]?.[0]
    const [common, own, another, same] = await Promise.all([bytes(), bytes(true), bytes(true), bytes()])
    assert.equal(new Set([common, own, another]).size, 3)
    assert.equal(same, common)
  })

  it('share at most 1 MiB of a long answer, of which each makes a text, and the others come in later turns', async () => {
    let count = 0
    const read = () => notes.engine.read(sql`select zeroblob(400000)`).then(() => count++)
    const counts = await atEachTurn(
      () => count,
      () => Promise.all(Array.from({ length: 8 }, read)),
    )
    assert.deepEqual(counts, [3, 6, 8])
  })

  it('fail independently of each other', async () => {
    const { engine } = notes
    const [one, none, two] = [sql`select 1`, sql`select nothing`, sql`select 2`].map(each => engine.read(each))
    await assert.rejects(async () => await none)
    assert.deepEqual([await one, await two], [[[1]], [[2]]])
  })

  it('have the limit of an answer each, not together, also after one that is above it', async () => {
    const most = bounds.answerBytes
    const count = (bytes: number) => notes.engine.read(sql`select ${bytes} where count_text(${bytes}) = 1`)
    const refused = assert.rejects(count(most + 1), { code: 'answer-too-large' })
    assert.deepEqual(await Promise.all([count(most), count(most - 1), refused]), [[[most]], [[most - 1]], undefined])
  })

  it('succeed after a turn whose transaction could not end', async t => {
    const { run } = SqliteConnection.prototype
    t.mock.method(SqliteConnection.prototype, 'run', function (this: SqliteConnection, statement: Statement) {
      if (statement.text === 'commit') throw new Error('no')
      return run.call(this, statement)
    })
    for (const value of ['1', '2']) {
      await notes.engine.write('put', 'open', value)
      assert.deepEqual(await notes.engine.read(sql`select value from notes where key = 'open'`), [[value]])
    }
  })

  it('run before its end if there are many, but not all of them if they are slow, and in their order', async t => {
    const { run } = SqliteConnection.prototype
    let [ran, time] = [0, performance.now()]
    t.mock.method(performance, 'now', () => time)
    t.mock.method(SqliteConnection.prototype, 'run', function (this: SqliteConnection, statement: Statement) {
      if (statement.text.startsWith('select ')) [ran, time] = [ran + 1, time + 10]
      return run.call(this, statement)
    })
    const answered: unknown[] = []
    for (let turns = 0; turns < 2; turns++) {
      ran = 0
      const reads = Array.from({ length: 200 }, (_, n) => notes.engine.read({ text: `select ${n}`, values: [] }))
      assert.equal(ran, 20)
      for (const read of reads) void read.then(([row]) => answered.push(row?.[0]))
      for (let turns = 0; turns < 200; turns++) await turn()
      assert.deepEqual(answered.splice(0), [...reads.keys()])
    }
  })

  it('run a few per turn if they are slow', async () => {
    const { engine } = notes
    const answered: number[] = []
    const reads = Array.from({ length: 20 }, async (_, n) => {
      await engine.read(sql`with recursive n(i) as (select 1 union all select i + 1 from n where i < ${50_000 + n})
                            select count(*) from n`)
      answered.push(n)
    })
    await reads[0]
    assert.ok(answered.length < 20)
    await Promise.all(reads)
    assert.deepEqual(answered, [...answered.keys()])
  })
})

describe('A SQLite file', () => {
  it('is durable: the writing connection has a write-ahead log, full synchronisation and foreign keys', async t => {
    const { engine } = await prepared(t)
    const settings = [sql`pragma journal_mode`, sql`pragma synchronous`, sql`pragma foreign_keys`]
    assert.deepEqual((await engine.write('run', settings)).flat(2), ['wal', 2, 1])
  })

  it('leaves one file behind when it is closed, and does not take that for a loss', async () => {
    const troubles: string[] = []
    await using database = await sqlite.create()
    {
      await using engine = database.open(catalogue, { observer: { trouble: message => troubles.push(message) } })
      await engine.ping()
      await engine.write('run', [sql`update counters set next = 5`])
    }
    assert.deepEqual(troubles, [])
    assert.ok(statSync(database.location).size > 0)
    for (const suffix of ['-wal', '-shm']) assert.equal(existsSync(database.location + suffix), false)
  })

  it('is used by one server at a time, under any name, and is free after that server ended, even if it was killed', async () => {
    await using database = await sqlite.create()
    await using holder = serveDuet({ DATABASE_URL: database.url })
    await holder.address()
    assert.throws(() => claimSqliteFile(database.location), /Another server is using .*duet\.db/)
    holder.child.kill('SIGKILL')
    await holder.outcome()
    {
      using first = claimSqliteFile(database.location)
      const alias = `${database.location}-alias`
      symlinkSync(database.location, alias)
      for (const name of [first.path, alias])
        assert.throws(() => claimSqliteFile(name), /Another server is using/, name)
    }
    claimSqliteFile(database.location)[Symbol.dispose]()
  })

  it('named :memory: is a temporary file that is deleted afterwards', () => {
    const file = claimSqliteFile(':memory:')
    assert.ok(existsSync(`${file.path}-lock`))
    file[Symbol.dispose]()
    assert.equal(existsSync(`${file.path}-lock`), false)
  })

  it('that cannot be read, written or opened now is an outage', () => {
    for (const errcode of [6, 7, 8, 13, 14, 261, 266, 778])
      assert.ok(isOutage(sqliteError(Object.assign(new Error(), { errcode }))), `${errcode}`)
  })

  it('is refused if the SQLite version could lose writes', () => {
    for (const version of ['3.51.2', '3.9.9', '2.99.99']) assert.throws(() => checkVersion(version), /too old/)
    for (const version of ['3.51.3', '3.52.0', '3.100.0', '4.0.0']) checkVersion(version)
  })
})

async function prepared(t: TestContext, options?: OpenOptions): Promise<Notes> {
  const notes = await openNotes(sqlite, options)
  t.after(() => notes[Symbol.asyncDispose]())
  return notes
}

/** A connection that commits jobs together. Those of the later lists arrive while the earlier ones run. */
async function batches(t: TestContext, busyMs?: number) {
  const database = await databaseWithNotes(sqlite)
  const connection = new SqliteConnection(database.location, 'write', busyMs)
  const reader = new SqliteConnection(database.location, 'read')
  t.after(async () => {
    reader[Symbol.dispose]()
    connection[Symbol.dispose]()
    await database[Symbol.asyncDispose]()
  })
  /** Each job's outcome, or the code of its error. */
  const commit = (first: readonly Job[], ...later: (readonly Job[])[]) =>
    commitTogether(connection, testVerbs, [...first], () => [...(later.shift() ?? [])]).map(
      ([id, outcome, error]) => [id, outcome ?? error?.code] as const,
    )
  return { database, connection, commit, keys: () => reader.run(sql`select key from notes order by key`).flat() }
}

const unavailable = (...ids: readonly number[]) => ids.map(id => [id, 'unavailable'])
const put = (id: number): Job => job(id, 'put', `k${id}`, 'v')

/** A job that writes something and then throws. */
const failing = (id: number): Job => job(id, 'putThenFail', `k${id}`)

/** A job that violates a foreign key which COMMIT checks, so that the verb itself succeeds. */
const orphan = (id: number): Job => job(id, 'run', [sql`insert into children (parent) values ('nobody')`])

const job = (id: number, verb: keyof typeof testVerbs, ...args: unknown[]): Job => [id, verb, args as never[], 0]

/** The side of a serving thread, without a writer thread. */
function writerAlone(t: TestContext, timeouts = timeoutsOf(testTimeoutMs)) {
  const ports: MessagePort[] = []
  const observer = { read() {}, write() {}, commit() {}, trouble() {} }
  const connect = (port: MessagePort) => void ports.push(port)
  const writer = new SqliteWriter({ connect, now: Date.now, observer, timeouts })
  t.after(async () => {
    for (const port of ports) port.close()
    await writer[Symbol.asyncDispose]()
  })
  return { writer, ports }
}

const isUnknown = (error: unknown): boolean =>
  isOutage(error) && /^The outcome is unknown\. /.test(String((error as Error).message))
