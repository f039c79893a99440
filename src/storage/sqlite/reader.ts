import { unavailable } from '../../core/errors.ts'
import { LruCache } from '../../core/lru-cache.ts'
import { bounds } from '../bounds.ts'
import type { Row, Statement, Value } from '../sql.ts'
import type { SqliteConnection } from './connection.ts'
import type { SqliteGuard } from './guard.ts'

/**
 * Collects all reads of one turn of the event loop and runs them together at its end, in one transaction. That saves
 * SQLite's implicit begin and end for each read. Equal reads run once and share the result, because inside one
 * transaction they would return the same rows. Slow reads come after quick ones, one per turn.
 */
export class SqliteReader implements Disposable {
  readonly #connection: SqliteConnection
  readonly #guard: SqliteGuard
  readonly #now: () => number
  #waiting: Waiting[] = []
  /** Whether a statement was slow when it last ran. */
  readonly #slow = new LruCache<string, { readonly isSlow: boolean; readonly length: number }>(bounds.statements, {
    weights: { of: ({ length }) => length, most: bounds.statementText.sqlite },
  })

  constructor(connection: SqliteConnection, guard: SqliteGuard, now: () => number) {
    this.#connection = connection
    this.#guard = guard
    this.#now = now
  }

  read(statement: Statement): Promise<readonly Row[]> {
    if (this.#waiting.length >= bounds.waiting)
      return Promise.reject(unavailable(new Error('Too many reads are waiting')))
    return new Promise((resolve, reject) => {
      if (this.#waiting.push({ statement, resolve, reject }) === 1) setImmediate(() => this.#readAll())
    })
  }

  #readAll(): void {
    const all = this.#waiting
    if (all.length === 0) return
    this.#waiting = []
    let rest: readonly Waiting[] = []
    try {
      this.#guard.require()
      // A transaction that an error left open would read an old snapshot.
      if (this.#connection.database.isTransaction) this.#connection.run(rollback)
      this.#connection.run(begin)
      this.#connection.setTime(this.#now())
      rest = this.#readSome(this.#quickFirst(all))
      // Some errors have already ended the transaction.
      if (this.#connection.database.isTransaction) this.#connection.run(commit)
    } catch (error) {
      rest = []
      for (const { reject } of all) reject(this.#guard.failure(error))
    }
    if (rest.length > 0) {
      this.#waiting = [...rest]
      setImmediate(() => this.#readAll())
    }
  }

  #quickFirst(all: readonly Waiting[]): readonly Waiting[] {
    if (!all.some(({ statement }) => this.#isSlow(statement))) return all
    const { quick = [], slow = [] } = Object.groupBy(all, ({ statement }) =>
      this.#isSlow(statement) ? 'slow' : 'quick',
    )
    return [...quick, ...slow]
  }

  #isSlow({ text, heavy = false }: Statement): boolean {
    return this.#slow.get(text)?.isSlow ?? heavy
  }

  /**
   * Runs reads for a limited time, so that their results can be sent before too many of them pile up in memory. Returns
   * the reads that have to wait.
   */
  #readSome(all: readonly Waiting[]): readonly Waiting[] {
    const known = new Map<string, Known>()
    const rest: Waiting[] = []
    let at = performance.now()
    const end = at + slice
    for (const waiting of all) {
      const { statement, resolve, reject } = waiting
      const same = known.get(statement.text)
      if (same !== undefined && statement.values.every((value, slot) => value === same.values[slot])) {
        resolve(same.rows)
      } else if (at > end) {
        rest.push(waiting)
      } else {
        const wasSlow = this.#isSlow(statement)
        try {
          const rows = this.#connection.run(statement)
          known.set(statement.text, { values: statement.values, rows })
          resolve(rows)
        } catch (error) {
          reject(this.#guard.failure(error))
        }
        const began = at
        at = performance.now()
        const isSlow = at - began > slice
        if (isSlow !== wasSlow) this.#slow.set(statement.text, { isSlow, length: statement.text.length })
      }
    }
    return rest
  }

  [Symbol.dispose](): void {
    while (this.#waiting.length > 0) this.#readAll()
    this.#connection[Symbol.dispose]()
  }
}

interface Waiting {
  readonly statement: Statement
  resolve(rows: readonly Row[]): void
  reject(error: Error): void
}

/** The rows of a statement's last run, and the values it ran with. */
interface Known {
  readonly values: readonly Value[]
  readonly rows: readonly Row[]
}

/** Maximum milliseconds of reading per turn. */
const slice = 5

const begin = { text: 'begin', values: [] }
const commit = { text: 'commit', values: [] }
const rollback = { text: 'rollback', values: [] }
