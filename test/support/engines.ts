import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock, StoreObserver } from '../../src/core/ports.ts'
import type { Engine } from '../../src/storage/engine.ts'
import type { Migration } from '../../src/storage/migrate.ts'
import { PostgresEngine } from '../../src/storage/postgres/engine.ts'
import { migratePostgres } from '../../src/storage/postgres/migrate.ts'
import { SqliteEngine } from '../../src/storage/sqlite/engine.ts'
import { migrateSqlite } from '../../src/storage/sqlite/file.ts'
import { type Timeouts, timeoutsOf } from '../../src/storage/timeouts.ts'
import type { Catalogue, Verbs } from '../../src/storage/verb.ts'
import { postgresMissing } from './postgres.ts'
import { dropPostgresDatabase, migrationsOf, newPostgresDatabase, sqliteTemplatePath } from './templates.ts'
import { testTimeoutMs } from './wait.ts'

/** A database of either kind, which a test can open several times. */
export interface TestDatabase extends AsyncDisposable {
  readonly kind: 'sqlite' | 'postgres'
  /** A path or an address. */
  readonly location: string
  /** `DATABASE_URL`. */
  readonly url: string
  migrate(migrations?: readonly Migration[]): Promise<readonly Migration[]>
  open<V extends Verbs>(catalogue: Catalogue<V>, options?: OpenOptions): Engine<V>
}

export interface OpenOptions {
  readonly observer?: Partial<StoreObserver>
  readonly clock?: Clock
  readonly poolMax?: number
  readonly pooler?: boolean
  readonly timeouts?: Timeouts
}

export interface EngineKind {
  readonly name: string
  readonly kind: TestDatabase['kind']
  /** The reason to skip tests on this kind, or false. */
  readonly skip: string | false
  /** Creates a database with the whole schema and no rows. */
  create(): Promise<TestDatabase>
  createEmpty(): Promise<TestDatabase>
}

export const sqlite: EngineKind = {
  name: 'SQLite',
  kind: 'sqlite',
  skip: false,
  create: async () => {
    const database = newSqliteFile()
    copyFileSync(sqliteTemplatePath(), database.location)
    return database
  },
  createEmpty: async () => newSqliteFile(),
}

export const postgres: EngineKind = {
  name: 'PostgreSQL',
  kind: 'postgres',
  skip: postgresMissing() ?? false,
  create: () => newPostgres('schema'),
  createEmpty: () => newPostgres('nothing'),
}

export const engineKinds = [sqlite, postgres]

function newSqliteFile(): TestDatabase {
  const folder = mkdtempSync(join(tmpdir(), 'duet-test-'))
  return sqliteAt(join(folder, 'duet.db'), () => rmSync(folder, { recursive: true, force: true }))
}

export function sqliteAt(path: string, remove: () => void = () => {}): TestDatabase {
  return {
    kind: 'sqlite',
    location: path,
    url: `sqlite:${path}`,
    migrate: async (migrations = migrationsOf('sqlite')) => migrateSqlite(path, migrations),
    open: (catalogue, options) => new SqliteEngine(path, { ...engineOptions(options), catalogue }),
    [Symbol.asyncDispose]: async () => remove(),
  }
}

async function newPostgres(contents: 'schema' | 'nothing'): Promise<TestDatabase> {
  const url = await newPostgresDatabase(contents)
  return postgresAt(url, () => dropPostgresDatabase(url))
}

export function postgresAt(url: string, drop: () => Promise<void> = async () => {}): TestDatabase {
  return {
    kind: 'postgres',
    location: url,
    url,
    migrate: (migrations = migrationsOf('postgres')) => migratePostgres(url, migrations),
    open: (catalogue, { poolMax = 10, pooler = false, ...options } = {}) =>
      new PostgresEngine({ ...engineOptions(options), catalogue, url, poolMax, pooler }),
    [Symbol.asyncDispose]: drop,
  }
}

function engineOptions({ observer, clock, timeouts = timeoutsOf(testTimeoutMs) }: OpenOptions = {}) {
  return { observer: { ...silent, ...observer }, clock: clock ?? { now: Date.now }, timeouts }
}

const silent: StoreObserver = { read() {}, write() {}, commit() {}, trouble() {} }
