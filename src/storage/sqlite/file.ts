import { randomInt } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Migration, migrate } from '../migrate.ts'
import { SqliteConnection } from './connection.ts'

/** The first version without the WAL-reset defect, which could lose acknowledged writes. */
const oldestSqlite = '3.51.3'

/** A database file made ready to serve. Disposing it gives the file free, and removes it if it was temporary. */
export interface SqliteFile extends Disposable {
  readonly path: string
}

/** The folder of `path` is made if need be; `:memory:` stands for a temporary file. */
export function claimSqliteFile(path: string): SqliteFile {
  checkVersion(process.versions.sqlite ?? '0')
  const temporary = path === ':memory:' ? mkdtempSync(join(tmpdir(), 'duet-')) : undefined
  const file = temporary === undefined ? realPath(path) : join(temporary, 'duet.db')
  keepPrivate(file)
  const lock = lockFor(file)
  markAsClaimed(file)
  return {
    path: file,
    [Symbol.dispose]() {
      lock.close()
      if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true })
    },
  }
}

/** A number of its own for every server that claims the file, by which it knows the file from any other. */
function markAsClaimed(file: string): void {
  using connection = new SqliteConnection(file, 'write')
  connection.database.exec(`pragma user_version = ${randomInt(1, 2 ** 31)}`)
}

/** Under one name, whatever link leads to it, so that two servers find the same lock. */
function realPath(path: string): string {
  mkdirSync(dirname(path), { recursive: true })
  return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path))
}

// A new file is for its owner alone: it will hold password hashes. SQLite gives its log the same rights.
function keepPrivate(file: string): void {
  closeSync(openSync(file, 'a', 0o600))
}

/** Brings a file's schema up to date. Other processes that try the same wait for their turn. */
export function migrateSqlite(path: string, migrations: readonly Migration[]): readonly Migration[] {
  if (path !== ':memory:') {
    mkdirSync(dirname(path), { recursive: true })
    keepPrivate(path)
  }
  using connection = new SqliteConnection(path, 'write')
  const { database } = connection
  database.exec('begin immediate')
  const steps = migrate(migrations)
  let step = steps.next([])
  while (!step.done) {
    if ('script' in step.value) database.exec(step.value.script)
    step = steps.next('script' in step.value ? [] : connection.run(step.value))
  }
  database.exec('commit')
  return step.value // an error on the way closes the connection, which undoes everything
}

/** Copies a database as of one moment, while a server may be writing to it. The copy is complete or not there at all. */
export function backupSqlite(path: string, target: string): void {
  const draft = `${target}.part`
  rmSync(draft, { force: true })
  keepPrivate(draft)
  const source = new DatabaseSync(path, { readOnly: true })
  try {
    source.prepare('vacuum into ?').run(draft)
    forgetClaim(draft)
    const copy = openSync(draft, 'r+')
    fsyncSync(copy)
    closeSync(copy)
    linkSync(draft, target) // unlike a renaming, refuses to replace a file
  } finally {
    source.close()
    rmSync(draft, { force: true })
  }
}

/** Put in the place of the original, a copy must not be taken for it. */
function forgetClaim(copy: string): void {
  const database = new DatabaseSync(copy)
  database.exec('pragma user_version = 0')
  database.close()
}

// A second server would serve stale events and double the timers. The operating system drops this lock with the process,
// however it ends; commands such as `users set-role` and `backup` do not take it.
function lockFor(file: string): DatabaseSync {
  keepPrivate(`${file}-lock`)
  const lock = new DatabaseSync(`${file}-lock`)
  try {
    lock.exec('pragma journal_mode = memory; pragma locking_mode = exclusive; begin exclusive')
    return lock
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
