import { unavailable } from '../core/errors.ts'
import { bounds } from './engine.ts'
import type { Row, Statement, Value } from './sql.ts'
import type { SqliteConnection } from './sqlite-connection.ts'
import type { SqliteGuard } from './sqlite-guard.ts'

/**
 * Reads of one turn of the event loop wait for its end and are done together: in one transaction, which spares each of
 * them SQLite's own begin and end, and once for all who ask the same, since there they would get the same.
 */
export class SqliteReader implements Disposable {
  readonly #connection: SqliteConnection
  readonly #guard: SqliteGuard
  readonly #now: () => number
  #waiting: Waiting[] = []

  constructor(connection: SqliteConnection, guard: SqliteGuard, now: () => number) {
    this.#connection = connection
    this.#guard = guard
    this.#now = now
  }

  read(statement: Statement): Promise<readonly Row[]> {
    if (this.#waiting.length >= bounds.waiting) return Promise.reject(unavailable(new Error('Too many reads wait')))
    return new Promise((resolve, reject) => {
      if (this.#waiting.push({ statement, resolve, reject }) === 1) setImmediate(() => this.#readAll())
    })
  }

  #readAll(): void {
    const all = this.#waiting
    if (all.length === 0) return
    this.#waiting = []
    let done = 0
    try {
      this.#guard.require()
      if (!this.#connection.database.isTransaction) this.#connection.run(begin)
      this.#connection.setTime(this.#now())
      done = this.#readFrom(all)
      if (this.#connection.database.isTransaction) this.#connection.run(commit) // some errors end it themselves
    } catch (error) {
      for (const { reject } of all.splice(0)) reject(this.#guard.failure(error))
    }
    if (done < all.length) {
      this.#waiting = all.slice(done)
      setImmediate(() => this.#readAll())
    }
  }

  /** Reads for a while, so that what is read can be sent before there is too much of it. Returns how many were done. */
  #readFrom(all: readonly Waiting[]): number {
    const end = performance.now() + slice
    const known = new Map<string, Known>()
    let done = 0
    for (const { statement, resolve, reject } of all) {
      try {
        resolve(this.#rowsOf(statement, known))
      } catch (error) {
        reject(this.#guard.failure(error))
      }
      done++
      if (performance.now() > end) break
    }
    return done
  }

  #rowsOf(statement: Statement, known: Map<string, Known>): readonly Row[] {
    const { text, values } = statement
    const same = known.get(text)
    if (same !== undefined && values.every((value, at) => value === same.values[at])) return same.rows
    const rows = this.#connection.run(statement)
    known.set(text, { values, rows })
    return rows
  }

  [Symbol.dispose](): void {
    this.#readAll()
    this.#connection[Symbol.dispose]()
  }
}

interface Waiting {
  readonly statement: Statement
  resolve(rows: readonly Row[]): void
  reject(error: Error): void
}

/** What a text gave when it was last read, and with which values. */
interface Known {
  readonly values: readonly Value[]
  readonly rows: readonly Row[]
}

/** Milliseconds of reading at a time. */
const slice = 5

const begin = { text: 'begin', values: [] }
const commit = { text: 'commit', values: [] }
