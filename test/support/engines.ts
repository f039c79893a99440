import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock, StoreObserver } from '../../src/core/ports.ts'
import type { Engine } from '../../src/storage/engine.ts'
import { loadMigrations, type Migration } from '../../src/storage/migrate.ts'
import { migratePostgres, PostgresEngine } from '../../src/storage/postgres.ts'
import { SqliteEngine } from '../../src/storage/sqlite.ts'
import { migrateSqlite } from '../../src/storage/sqlite-file.ts'
import { type Timeouts, timeoutsOf } from '../../src/storage/timeouts.ts'
import type { Catalogue, Verbs } from '../../src/storage/verb.ts'
import { freshPostgresDatabase, postgresMissing } from './postgres.ts'
import { patienceMs } from './wait.ts'

/** An empty database of either kind, to open as often as a test likes. */
export interface TestDatabase extends AsyncDisposable {
  readonly kind: 'sqlite' | 'postgres'
  /** A path or an address. */
  readonly location: string
  migrate(migrations?: readonly Migration[]): Promise<readonly Migration[]>
  open<V extends Verbs>(catalogue: Catalogue<V>, options?: OpenOptions): Engine<V>
}

export interface OpenOptions {
  readonly observer?: Partial<StoreObserver>
  readonly clock?: Clock
  readonly poolMax?: number
  readonly timeouts?: Timeouts
}

export interface EngineKind {
  readonly name: string
  readonly kind: TestDatabase['kind']
  /** Why tests on this kind cannot run here. */
  readonly skip: string | false
  create(): Promise<TestDatabase>
}

export const sqlite: EngineKind = {
  name: 'SQLite',
  kind: 'sqlite',
  skip: false,
  create: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'duet-test-'))
    return sqliteAt(join(folder, 'duet.db'), () => rmSync(folder, { recursive: true, force: true }))
  },
}

export const postgres: EngineKind = {
  name: 'PostgreSQL',
  kind: 'postgres',
  skip: postgresMissing() ?? false,
  create: async () => postgresAt(await freshPostgresDatabase()),
}

export const engineKinds = [sqlite, postgres]

export function sqliteAt(path: string, remove: () => void = () => {}): TestDatabase {
  return {
    kind: 'sqlite',
    location: path,
    migrate: async (migrations = migrationsOf('sqlite')) => migrateSqlite(path, migrations),
    open: (catalogue, options) => new SqliteEngine(path, { ...engineOptions(options), catalogue }),
    [Symbol.asyncDispose]: async () => remove(),
  }
}

export function postgresAt(url: string): TestDatabase {
  return {
    kind: 'postgres',
    location: url,
    migrate: (migrations = migrationsOf('postgres')) => migratePostgres(url, migrations),
    open: (catalogue, options) =>
      new PostgresEngine({
        ...engineOptions(options),
        catalogue,
        url,
        poolMax: options?.poolMax ?? 10,
        randomness: { id: randomUUID },
      }),
    [Symbol.asyncDispose]: async () => {},
  }
}

export function databaseAt(kind: TestDatabase['kind'], location: string): TestDatabase {
  return kind === 'sqlite' ? sqliteAt(location) : postgresAt(location)
}

export function migrationsOf(kind: TestDatabase['kind']): readonly Migration[] {
  return loadMigrations(join(import.meta.dirname, '..', '..', 'migrations', kind))
}

function engineOptions({ observer, clock, timeouts = timeoutsOf(patienceMs) }: OpenOptions = {}) {
  return { observer: { ...silent, ...observer }, clock: clock ?? { now: Date.now }, timeouts }
}

const silent: StoreObserver = { read() {}, write() {}, commit() {}, trouble() {} }
