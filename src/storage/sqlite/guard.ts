import { closeSync, openSync, readSync, type Stats, statSync } from 'node:fs'
import { type AppError, unavailable } from '../../core/errors.ts'
import type { StoreObserver } from '../../core/ports.ts'
import { sqliteCode, sqliteError } from './connection.ts'

/**
 * Watches that the file that is open is still the one under its name. SQLite goes on with a file that was removed or
 * replaced, and everything it then writes is gone with the process. Once the file is lost, nothing is read, written or
 * acknowledged any more until a restart: what this process has open is not what the next one will find.
 */
export class SqliteGuard implements Disposable {
  readonly #path: string
  readonly #observer: Pick<StoreObserver, 'trouble'>
  /** Held until the end: to close any descriptor of the file would drop the locks that SQLite has on it. */
  readonly #descriptor: number
  readonly #timer: NodeJS.Timeout
  readonly #known = new Map<string, Stats>()
  /** Marks that the file's header may bear: the one that it has, and the one that is in the log. */
  readonly #marks: Set<number>
  #largest = 0
  #lost: Error | undefined

  /** `mark` is the database's `user_version`, as SQLite reads it. */
  constructor(path: string, mark: number, observer: Pick<StoreObserver, 'trouble'>) {
    this.#path = path
    this.#observer = observer
    this.#descriptor = openSync(path, 'r')
    this.#marks = new Set([mark, readHeader(this.#descriptor)?.mark ?? mark])
    this.#look(['']) // what else is there may belong to another process, which takes it away when it closes the file
    this.#timer = setInterval(() => this.#lookAround(), lookEveryMs).unref()
  }

  /** Throws when the file is known to be lost. */
  require(): void {
    if (this.#lost !== undefined) throw unavailable(this.#lost)
  }

  /** Looks again, and throws when the file is lost or cannot be looked at: to be called after a commit, before it is acknowledged. */
  check(): void {
    try {
      this.#look(['', '-wal', '-shm'])
    } catch (error) {
      throw unavailable(error)
    }
    this.require()
  }

  /** What to tell a caller about an error of SQLite. A file whose content is no database is lost, too. */
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
    } catch {} // whoever writes is told
  }

  #look(suffixes: readonly string[]): void {
    if (this.#lost !== undefined) return
    const loss = this.#loss(suffixes)
    if (loss !== undefined) this.#lose(loss)
  }

  #lose(how: string): void {
    if (this.#lost !== undefined) return
    this.#lost = new Error(`The database file ${this.#path} ${how}`)
    this.#observer.trouble('The database file is lost. Nothing is read or written until a restart.', this.#lost)
  }

  #loss(suffixes: readonly string[]): string | undefined {
    for (const suffix of suffixes) {
      const known = this.#known.get(suffix)
      const found = statSync(this.#path + suffix, { throwIfNoEntry: false })
      if (found === undefined) {
        if (known === undefined) continue // where SQLite cannot keep a log, it has none
        return suffix === '' ? 'was removed' : `lacks its ${suffix}`
      }
      if (known !== undefined && (known.ino !== found.ino || known.dev !== found.dev)) return 'was replaced'
      this.#known.set(suffix, found)
      const change = suffix === '' && isTouched(known, found) ? this.#change(found.size) : undefined
      if (change !== undefined) return change
    }
    return undefined
  }

  /** Whether the file was changed in place by anything but SQLite. */
  #change(size: number): string | undefined {
    const header = readHeader(this.#descriptor)
    if (header === undefined) return 'is no database any more'
    if (!this.#marks.has(header.mark)) return 'was overwritten'
    // SQLite may be about to make the file larger, and then its header tells the new size already.
    if (size < this.#largest && size < header.bytes) return 'was cut off'
    this.#largest = size
    return undefined
  }

  /** From now on it looks only when it is asked to: who closes the file takes its log away. */
  rest(): void {
    clearInterval(this.#timer)
  }

  [Symbol.dispose](): void {
    this.rest()
    closeSync(this.#descriptor)
  }
}

const lookEveryMs = 500

function isTouched(known: Stats | undefined, found: Stats): boolean {
  return known?.mtimeMs !== found.mtimeMs || known.size !== found.size
}

interface Header {
  /** `user_version`, set anew whenever a server claims the file. */
  readonly mark: number
  /** How large the file should be. */
  readonly bytes: number
}

/** See https://www.sqlite.org/fileformat.html, "The Database Header". */
function readHeader(descriptor: number): Header | undefined {
  const header = Buffer.alloc(100)
  const read = readSync(descriptor, header, 0, header.length, 0)
  if (read < header.length || header.toString('latin1', 0, 16) !== 'SQLite format 3\0') return undefined
  const told = header.readUInt16BE(16)
  const pageSize = told === 1 ? 65_536 : told
  return { mark: header.readInt32BE(60), bytes: header.readUInt32BE(28) * pageSize }
}
