import { join } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import type { Engine, EngineOptions } from './engine.ts'
import { loadMigrations, type Migration } from './migrate.ts'
import type { SharedSqlite } from './sqlite/engine.ts'
import { claimSqliteFile, migrateSqlite } from './sqlite/file.ts'
import { WriterWorker } from './sqlite/writer-worker.ts'
import type { Timeouts } from './timeouts.ts'
import type { verbs } from './verbs.ts'

// Engines and verbs are imported when they are opened. A process needs one of the engines, and a thread that only claims a
// database needs none.

/** The engine to use, and where its data is. */
export type DatabaseAddress =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly poolMax: number; readonly pooler: boolean }

export type OpenOptions = Omit<EngineOptions<typeof verbs>, 'catalogue'>

/** An open database with an up-to-date schema. Disposing it closes the engine and unlocks the file. */
export interface OpenDatabase extends AsyncDisposable {
  readonly engine: Engine<typeof verbs>
  /** The database file. Only set for SQLite. */
  readonly path: string | undefined
}

/** Opens a database for a server and brings its schema up to date. Only one server at a time may open a SQLite file. */
export async function openDatabase(address: DatabaseAddress, options: OpenOptions): Promise<OpenDatabase> {
  await using parts = new AsyncDisposableStack()
  const claimed = parts.use(await shareDatabase(address, options.timeouts, options.observer.trouble))
  const { engine, path } = parts.use(await openShared(claimed.address, options, { ...claimed, threads: 1 }))
  const all = parts.move()
  return { engine, path, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

/**
 * The main thread's part of a database that several threads of this process open. On SQLite it has the lock of the file
 * and the one writer thread. It must be disposed after all engines of other threads.
 */
export interface SharedDatabase extends AsyncDisposable {
  /** Of the claimed database. */
  readonly address: DatabaseAddress
  /** Lets a thread send verbs to the writer thread. */
  connect(port: MessagePort): void
}

/** Locks the file of a SQLite database for this process, and brings the schema up to date. */
export async function shareDatabase(
  address: DatabaseAddress,
  { operation: busyMs }: Timeouts,
  trouble: (message: string, error: unknown) => void,
): Promise<SharedDatabase> {
  await using parts = new AsyncDisposableStack()
  const file = address.kind === 'sqlite' ? parts.use(claimSqliteFile(address.path)) : undefined
  const claimed = file === undefined ? address : ({ kind: 'sqlite', path: file.path } as const)
  await migrateDatabase(claimed, line => trouble(line, undefined))
  const catalogueUrl = import.meta.resolve('./verbs.ts')
  const writer = file && parts.use(new WriterWorker({ path: file.path, catalogueUrl, busyMs }, trouble))
  const all = parts.move()
  return {
    address: claimed,
    connect: port => writer?.connect(port),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}

/** Opens, in a thread that serves, the database that the main thread has claimed. */
export async function openShared(
  address: DatabaseAddress,
  options: OpenOptions,
  shared: SharedSqlite,
): Promise<OpenDatabase> {
  const engine = await newEngine(address, options, shared)
  const path = address.kind === 'sqlite' ? address.path : undefined
  return { engine, path, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() }
}

/** Opens a database for a command. A server may have the same database open at the same time. */
export async function openForCommand(address: DatabaseAddress, options: OpenOptions): Promise<Engine<typeof verbs>> {
  await migrateDatabase(address, line => options.observer.trouble(line, undefined))
  return await newEngine(address, options)
}

/** Applies the missing migrations and returns them. `tell` gets lines for the operator. */
export async function migrateDatabase(
  address: DatabaseAddress,
  tell: (line: string) => void,
): Promise<readonly Migration[]> {
  const migrations = loadMigrations(join(import.meta.dirname, '..', '..', 'migrations', address.kind))
  if (address.kind === 'sqlite') return migrateSqlite(address.path, migrations)
  const { migratePostgres } = await import('./postgres/migrate.ts')
  return await migratePostgres(address.url, migrations, tell)
}

async function newEngine(
  address: DatabaseAddress,
  options: OpenOptions,
  shared?: SharedSqlite,
): Promise<Engine<typeof verbs>> {
  const { catalogue } = await import('./verbs.ts')
  const all = { ...options, catalogue }
  if (address.kind === 'sqlite') {
    const { SqliteEngine } = await import('./sqlite/engine.ts')
    return new SqliteEngine(address.path, all, shared)
  }
  const { PostgresEngine } = await import('./postgres/engine.ts')
  const { warnOfMissingSettings } = await import('./postgres/settings.ts')
  await using parts = new AsyncDisposableStack()
  const engine = parts.use(new PostgresEngine({ ...all, ...address }))
  if (address.pooler) await warnOfMissingSettings(engine, options.observer)
  parts.move()
  return engine
}
