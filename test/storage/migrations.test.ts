import assert from 'node:assert/strict'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, test } from 'node:test'
import { loadMigrations, type Migration } from '../../src/storage/migrate.ts'
import { migratePostgres } from '../../src/storage/postgres/migrate.ts'
import { MigrationSession } from '../../src/storage/postgres/migration-session.ts'
import { sql } from '../../src/storage/sql.ts'
import { Wire } from '../faults/wire.ts'
import { type EngineKind, engineKinds, postgres, sqlite } from '../support/engines.ts'
import { temporaryFolder } from '../support/folder.ts'
import { DuetProcess, runDuet } from '../support/process.ts'
import { migrationsOf } from '../support/templates.ts'
import { waitUntil, within } from '../support/wait.ts'
import { catalogue } from './contract-verbs.ts'

for (const kind of engineKinds) {
  describe(`Migrations on ${kind.name}`, { skip: kind.skip }, () => {
    const all = migrationsOf(kind.kind)
    const added = migration(all.length + 1, 'create table added (id integer primary key)')

    it('are applied once, in order, each with its checksum', async () => {
      await using database = await kind.createEmpty()
      assert.deepEqual(await database.migrate(), all)
      assert.deepEqual(await database.migrate(), [])
      assert.deepEqual(await database.migrate([...all, added]), [added])
      await using engine = database.open(catalogue)
      const rows = await engine.read(sql`select version, checksum from schema_migrations order by version`)
      const expected = [...all, added].map(({ version, checksum }) => [version, checksum])
      assert.deepEqual(rows, expected)
    })

    it('refuse a database that is newer than the program, and a migration that was changed after it was applied', async () => {
      await using database = await kind.createEmpty()
      await database.migrate([...all, added])
      await assert.rejects(database.migrate(), refusal(/newer than this program/))
      const changed = { ...added, checksum: 'another' }
      await assert.rejects(database.migrate([...all, changed]), refusal(/changed after it was applied/))
    })

    it('change nothing from the statement that fails on, and go on there the next time', async () => {
      await using database = await kind.createEmpty()
      await database.migrate()
      const half = 'create table half (id integer primary key); select * from nowhere'
      await assert.rejects(database.migrate([...all, added, migration(added.version + 1, half)]))
      const whole = migration(added.version + 1, half.replace('nowhere', 'added'))
      assert.deepEqual((await database.migrate([...all, added, whole])).at(-1), whole)
    })
  })
}

test('migrations on an empty SQLite file wait for each other when several programs start together', async () => {
  await using database = await sqlite.createEmpty()
  const env = { DATABASE_URL: database.url }
  const runs = await Promise.all([1, 2].map(() => runDuet(['migrate'], { env })))
  const applied = migrationsOf('sqlite').map(({ version, name }) => `applied ${version} ${name}\n`)
  const upToDate = 'The schema is up to date.\n'
  assert.deepEqual(runs.map(({ stdout }) => stdout).sort(), [upToDate, applied.join('') + upToDate])
  assert.equal(statSync(database.location).mode & 0o777, 0o600)
})

test('migrations on an empty PostgreSQL database wait while another instance migrates, and are applied when that one is killed', {
  skip: postgres.skip,
}, async t => {
  await using database = await postgres.createEmpty()
  const address = new URL(database.location)
  await using proxy = await Wire.to(address)
  let isMigrating = false
  proxy.fromClient = data => {
    isMigrating ||= data.includes('create table users')
    return isMigrating ? 'keep' : 'pass'
  }
  address.port = String(proxy.port)
  await using first = new DuetProcess(['migrate'], { env: { DATABASE_URL: address.href } })
  await waitUntil(() => isMigrating)
  const told = Promise.withResolvers<string>()
  const { mock } = t.mock.method(globalThis, 'clearInterval')
  const second = migratePostgres(database.location, migrationsOf('postgres'), told.resolve)
  assert.match(await within(told.promise, 'a line of the one that waits'), /^Another instance migrates/)
  first.child.kill('SIGKILL')
  assert.deepEqual(await second, migrationsOf('postgres'))
  assert.equal(mock.callCount(), 1, 'no timer keeps the process')
})

test('a migration lets others pass a moment after it has met a lock, however often it tries', {
  skip: postgres.skip,
}, async () => {
  await using database = await postgres.createEmpty()
  await using session = await MigrationSession.open(database.location)
  const locked = Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' })
  const waits: unknown[] = []
  const work = async () => {
    waits.push(...(await session.query(sql`show lock_timeout`)))
    if (waits.length < 3) throw locked
  }
  await session.transactWhenFree(() => {}, work)
  assert.deepEqual(waits, [['200ms'], ['200ms'], ['200ms']])
})

test('an index that is only half built is built again, also a unique one', { skip: postgres.skip }, async () => {
  await using database = await postgres.createEmpty()
  await using session = await MigrationSession.open(database.location)
  await session.script('create table numbers (n integer); insert into numbers values (1), (1)')
  const build = () => session.runAlone('create unique index concurrently numbers_by_n on numbers (n);\n')
  await assert.rejects(build(), { code: '23505' })
  await session.script('delete from numbers')
  await build()
})

describe('Migration files', () => {
  it('have a checksum of their text that does not depend on line endings', () => {
    const [unix] = loaded({ '0001_init.sql': 'select 1;\nselect 2;\n' })
    const [windows] = loaded({ '0001_init.sql': 'select 1;\r\nselect 2;\r\n' })
    const [other] = loaded({ '0001_init.sql': 'select 1;\nselect 3;\n' })
    assert.equal(unix?.checksum, windows?.checksum)
    assert.notEqual(unix?.checksum, other?.checksum)
  })

  it('are refused if their numbers have a gap or their names are malformed', () => {
    assert.throws(() => loaded({ '0001_init.sql': '', '0003_gap.sql': '' }), /0003_gap\.sql/)
    assert.throws(() => loaded({ '1_init.sql': '' }), /1_init\.sql/)
  })

  it('have the same numbers and names for both engines', () => {
    const named = (kind: EngineKind['kind']) => migrationsOf(kind).map(({ version, name }) => `${version} ${name}`)
    assert.deepEqual(named('sqlite'), named('postgres'))
  })

  it('of PostgreSQL name the version that may run beside them', () => {
    for (const { name, script } of migrationsOf('postgres').slice(2))
      assert.match(script, /^-- Beside it: 0\.\d+\.\d+/, name)
  })
})

function migration(version: number, script: string): Migration {
  return { version, name: 'for-a-test', script, checksum: `checksum of ${script}` }
}

const refusal =
  (pattern: RegExp): ((error: unknown) => boolean) =>
  error =>
    error instanceof Error && pattern.test(error.message) && !error.message.includes('\n')

function loaded(files: Readonly<Record<string, string>>): readonly Migration[] {
  using folder = temporaryFolder()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder.path, name), text)
  return loadMigrations(folder.path)
}
