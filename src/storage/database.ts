import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Engine, EngineOptions } from './engine.ts'
import { loadMigrations, type Migration } from './migrate.ts'
import { backupSqlite } from './sqlite/backup.ts'
import type { SharedSqlite } from './sqlite/engine.ts'
import { claimSqliteFile, migrateSqlite } from './sqlite/file.ts'
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
  const claimed = await claimDatabase(address, parts)
  const { engine, path } = parts.use(await openClaimed(claimed, options))
  const all = parts.move()
  return { engine, path, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

/** Opens a database that this process has claimed. `shared`: what several threads with the same SQLite file share. */
export async function openClaimed(
  address: DatabaseAddress,
  options: OpenOptions,
  shared?: SharedSqlite,
): Promise<OpenDatabase> {
  await using parts = new AsyncDisposableStack()
  const engine = parts.use(await newEngine(address, options, shared))
  if (address.kind === 'postgres' && address.pooler) await warnOfMissingSettings(engine, options.observer)
  const all = parts.move()
  const path = address.kind === 'sqlite' ? address.path : undefined
  return { engine, path, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

/** Locks the file of a SQLite database for this process, and brings the schema up to date. */
export async function claimDatabase(address: DatabaseAddress, parts: AsyncDisposableStack): Promise<DatabaseAddress> {
  const file = address.kind === 'sqlite' ? parts.use(claimSqliteFile(address.path)) : undefined
  const claimed = file === undefined ? address : ({ kind: 'sqlite', path: file.path } as const)
  await migrateDatabase(claimed)
  return claimed
}

/** Behind a pooler, the planner settings cannot be sent with a connection. The role must have them. */
async function warnOfMissingSettings(engine: Engine<typeof verbs>, observer: OpenOptions['observer']): Promise<void> {
  const { missingSettings } = await import('./postgres/settings.ts')
  const missing = await missingSettings(statement => engine.read(statement))
  if (missing.length > 0) observer.trouble(`Reads may be slow. Run: ${missing.join('; ')}`, undefined)
}

/** Opens a database for a command. A server may have the same database open at the same time. */
export async function openForCommand(
  address: DatabaseAddress,
  options: OpenOptions,
): Promise<Engine<typeof verbs> & AsyncDisposable> {
  await migrateDatabase(address)
  return await newEngine(address, options)
}

/** Applies the missing migrations and returns them. */
export async function migrateDatabase(address: DatabaseAddress): Promise<readonly Migration[]> {
  const migrations = loadMigrations(join(import.meta.dirname, '..', '..', 'migrations', address.kind))
  if (address.kind === 'sqlite') return migrateSqlite(address.path, migrations)
  const { migratePostgres } = await import('./postgres/migrate.ts')
  return await migratePostgres(address.url, migrations)
}

/** Copies a SQLite database. A server may be using it meanwhile. */
export async function backupDatabase(
  { path }: DatabaseAddress & { kind: 'sqlite' },
  target: string,
  stop: AbortSignal,
): Promise<void> {
  await backupSqlite(path, target, stop)
}

export function isMissing(address: DatabaseAddress): boolean {
  return address.kind === 'sqlite' && !existsSync(address.path)
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
  return new PostgresEngine({ ...all, ...address })
}
