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

/** An engine with the verbs of the store, over an up-to-date schema. */
export type OpenDatabase = Engine<typeof verbs>

/** Opens a database for a server. Only one server at a time may open a SQLite file. `parts` gets what is to be disposed. */
export async function openDatabase(
  address: DatabaseAddress,
  options: OpenOptions,
  parts: AsyncDisposableStack,
): Promise<OpenDatabase> {
  const { timeouts, observer } = options
  const shared = parts.use(await shareDatabase(address, timeouts, observer.trouble))
  return parts.use(await openEngine(shared.address, options, { ...shared, threads: 1 }))
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
  const connect = (port: MessagePort) => writer?.connect(port)
  return Object.assign(parts.move(), { address: claimed, connect })
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

/** Opens a database whose schema is up to date. With `shared`: in a thread that serves, after the main thread has claimed it. */
export async function openEngine(
  address: DatabaseAddress,
  options: OpenOptions,
  shared?: SharedSqlite,
): Promise<OpenDatabase> {
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
