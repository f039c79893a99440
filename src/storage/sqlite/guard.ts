import { closeSync, openSync, readSync, type Stats, statSync } from 'node:fs'
import { type AppError, unavailable } from '../../core/errors.ts'
import type { StoreObserver } from '../../core/ports.ts'
import { sqliteCode, sqliteError } from './connection.ts'

/**
 * Checks that the open file is still the file at its path. SQLite keeps working on a file that was deleted or replaced,
 * and everything it writes is lost when the process ends. Once the file is lost, nothing is read, written or
 * acknowledged until a restart, because this process no longer has the file that the next process will open.
 */
export class SqliteGuard implements Disposable {
  readonly #path: string
  readonly #observer: Pick<StoreObserver, 'trouble'>
  /** Stays open until the end. Closing any descriptor of the file would release the locks that SQLite holds on it. */
  readonly #descriptor: number
  /** Only set if threads share the file. */
  readonly #flag: Int32Array | undefined
  readonly #timer: NodeJS.Timeout
  readonly #known = new Map<string, Stats>()
  /** Valid values of `user_version` in the file's header: the current one, and the one that is still in the WAL. */
  readonly #userVersions: Set<number>
  #largest = 0
  #lost: Error | undefined

  /**
   * `userVersion` is the database's `user_version` as SQLite reads it. `shared`: what guards of other
   * threads use too. Its owner closes the descriptor when all of them have ended.
   */
  constructor(path: string, userVersion: number, observer: Pick<StoreObserver, 'trouble'>, shared?: SharedGuard) {
    this.#path = path
    this.#observer = observer
    this.#flag = shared && new Int32Array(shared.lost)
    this.#descriptor = shared?.descriptor ?? openSync(path, 'r')
    this.#userVersions = new Set([userVersion, readHeader(this.#descriptor)?.userVersion ?? userVersion])
    this.#look(['']) // a WAL file here may belong to another process, which deletes it when it closes the file
    this.#timer = setInterval(() => this.#lookAround(), checkEveryMs).unref()
  }

  /** Throws if the file is known to be lost. */
  require(): void {
    if (this.#flag !== undefined && Atomics.load(this.#flag, 0) !== 0)
      this.#lose('is lost, as another thread has found')
    if (this.#lost !== undefined) throw unavailable(this.#lost)
  }

  /** Checks the file. Throws if it is lost or cannot be checked. Call it between a commit and its acknowledgement. */
  check(): void {
    try {
      this.#look(['', '-wal', '-shm'])
    } catch (error) {
      throw unavailable(error)
    }
    this.require()
  }

  /**
   * Converts an error of SQLite to an error for the caller. If the error says that the file is damaged or not a
   * database, the file counts as lost.
   */
  failure(error: unknown): AppError {
    this.suspect(sqliteCode(error))
    return sqliteError(error)
  }

  suspect(code: number | undefined): void {
    if (code === 11 || code === 26) this.#lose('is damaged')
  }

  #lookAround(): void {
    try {
      this.#look([...this.#known.keys()])
    } catch {} // the next write gets this error
  }

  #look(suffixes: readonly string[]): void {
    if (this.#lost !== undefined) return
    const loss = this.#loss(suffixes)
    if (loss !== undefined) this.#lose(loss)
  }

  #lose(how: string): void {
    if (this.#lost !== undefined) return
    this.#lost = new Error(`The database file ${this.#path} ${how}`)
    if (this.#flag !== undefined && Atomics.exchange(this.#flag, 0, 1) !== 0) return // another thread has reported it
    this.#observer.trouble('The database file is lost. Nothing is read or written until a restart.', this.#lost)
  }

  #loss(suffixes: readonly string[]): string | undefined {
    for (const suffix of suffixes) {
      const known = this.#known.get(suffix)
      const found = statSync(this.#path + suffix, { throwIfNoEntry: false })
      if (found === undefined) {
        if (known === undefined) continue // SQLite has no WAL file where it cannot use one
        return suffix === '' ? 'was removed' : `lacks its ${suffix}`
      }
      if (known !== undefined && (known.ino !== found.ino || known.dev !== found.dev)) return 'was replaced'
      this.#known.set(suffix, found)
      const change = suffix === '' && isTouched(known, found) ? this.#change(found.size) : undefined
      if (change !== undefined) return change
    }
    return undefined
  }

  /** Tells how something other than SQLite changed the file in place, or undefined if nothing did. */
  #change(size: number): string | undefined {
    const header = readHeader(this.#descriptor)
    if (header === undefined) return 'is not a database any more'
    if (!this.#userVersions.has(header.userVersion)) return 'was overwritten'
    // If SQLite is about to extend the file, its header already contains the new size.
    if (size < this.#largest && size < header.bytes) return 'was cut off'
    this.#largest = size
    return undefined
  }

  /** Stops the periodic checks, because closing the file deletes its WAL file. `check` still works. */
  rest(): void {
    clearInterval(this.#timer)
  }

  [Symbol.dispose](): void {
    this.rest()
    if (this.#flag === undefined) closeSync(this.#descriptor)
  }
}

/** What the guards of several threads share. */
export interface SharedGuard {
  readonly descriptor: number
  /** 1 as soon as one of them has found that the file is lost: then it is lost for all. */
  readonly lost: SharedArrayBuffer
}

const checkEveryMs = 500

function isTouched(known: Stats | undefined, found: Stats): boolean {
  return known?.mtimeMs !== found.mtimeMs || known.size !== found.size
}

interface Header {
  /** `user_version`. It gets a new value whenever a server claims the file. */
  readonly userVersion: number
  /** The size of the file according to its header. */
  readonly bytes: number
}

/** See https://www.sqlite.org/fileformat.html, "The Database Header". */
function readHeader(descriptor: number): Header | undefined {
  const header = Buffer.alloc(100)
  const read = readSync(descriptor, header, 0, header.length, 0)
  if (read < header.length || header.toString('latin1', 0, 16) !== 'SQLite format 3\0') return undefined
  const stored = header.readUInt16BE(16)
  const pageSize = stored === 1 ? 65_536 : stored
  return { userVersion: header.readInt32BE(60), bytes: header.readUInt32BE(28) * pageSize }
}
