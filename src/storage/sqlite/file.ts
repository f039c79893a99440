import { randomInt } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { appliedMigrations, isApplied, type Migration, missingOf, stepsOf, versionTable } from '../migrate.ts'
import { SqliteConnection } from './connection.ts'

/** The first version without the WAL-reset bug, which could lose acknowledged writes. */
const oldestSqlite = '3.51.3'

/**
 * Locks the file for this server. Creates the folder of `path` if it is missing. `:memory:` means a temporary file.
 * Disposing the result releases the lock, and deletes the file if it was temporary.
 */
export function claimSqliteFile(path: string): Disposable & { readonly path: string } {
  checkVersion(process.versions.sqlite ?? '0')
  const temporary = path === ':memory:' ? mkdtempSync(join(tmpdir(), 'duet-')) : undefined
  const file = temporary === undefined ? realPath(path) : join(temporary, 'duet.db')
  keepPrivate(file)
  const lock = lockSqliteFile(file)
  // A new number whenever a server claims the file. With it the server notices when another file has replaced its own.
  using connection = new SqliteConnection(file, 'write')
  connection.database.exec(`pragma user_version = ${randomInt(1, 2 ** 31)}`)
  return {
    path: file,
    [Symbol.dispose]() {
      lock[Symbol.dispose]()
      if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true })
    },
  }
}

/** The real path, with links resolved, so that two servers that open the same file find the same lock. */
function realPath(path: string): string {
  mkdirSync(dirname(path), { recursive: true })
  return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path))
}

// Only the owner may read a new file: it will hold password hashes. SQLite gives the WAL file the same mode.
function keepPrivate(file: string): void {
  closeSync(openSync(file, 'a', 0o600))
}

/** Applies the missing migrations: all of them or none. Other processes that do the same wait for their turn. */
export function migrateSqlite(path: string, migrations: readonly Migration[]): readonly Migration[] {
  if (path !== ':memory:') {
    mkdirSync(dirname(path), { recursive: true })
    keepPrivate(path)
  }
  using connection = new SqliteConnection(path, 'write')
  const { database } = connection
  database.exec(`begin immediate; ${versionTable}`)
  const missing = missingOf(migrations, connection.run(appliedMigrations))
  for (const migration of missing) {
    for (const step of stepsOf(migration)) {
      let after = 0
      if (step.kind !== 'run') database.exec(step.statements)
      else
        do after = connection.take(step.mend(after)).last
        while (after > 0)
    }
    connection.run(isApplied(migration))
  }
  database.exec('commit')
  return missing // after an error above, the connection is closed, which rolls everything back
}

/**
 * Allows one server per file: a second server would deliver events late and run the timers twice. The operating system
 * releases the lock when the process ends, even after a crash. Commands such as `users set-role` and `backup` do not
 * take the lock; `move` does, because a server's next writes would be lost.
 */
export function lockSqliteFile(path: string): Disposable {
  const file = realPath(path)
  keepPrivate(`${file}-lock`)
  const lock = new DatabaseSync(`${file}-lock`)
  try {
    lock.exec('pragma journal_mode = memory; pragma locking_mode = exclusive; begin exclusive')
    return { [Symbol.dispose]: () => lock.close() }
  } catch (error) {
    lock.close()
    const isBusy = error instanceof Error && 'errcode' in error && error.errcode === 5
    throw isBusy ? new Error(`Another server is using ${file}`, { cause: error }) : error
  }
}

export function checkVersion(version: string): void {
  if (version.localeCompare(oldestSqlite, 'en', { numeric: true }) < 0) {
    throw new Error(
      `SQLite ${version} is too old: ${oldestSqlite} or newer is needed. Use the Node that npm installs here.`,
    )
  }
}
