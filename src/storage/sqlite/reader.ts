import { unavailable } from '../../core/errors.ts'
import { LruCache } from '../../core/lru-cache.ts'
import { bounds } from '../bounds.ts'
import type { Row, Statement, Value } from '../sql.ts'
import { type SqliteConnection, TextTooLong } from './connection.ts'
import type { SqliteGuard } from './guard.ts'
import type { HeavyReads } from './heavy-reads.ts'

/**
 * Collects all reads of one turn of the event loop and runs them together at its end, in one transaction. That saves
 * SQLite's implicit begin and end for each read. Equal reads run once and share the result, because inside one
 * transaction they would return the same rows. Heavy reads run in a thread of their own: those with many rows, with
 * long texts, and those that were slow the last times they ran.
 */
export class SqliteReader implements Disposable {
  readonly #connection: SqliteConnection
  readonly #guard: SqliteGuard
  readonly #heavy: Pick<HeavyReads, 'read'>
  readonly #now: () => number
  #waiting: Waiting[] = []
  /** How often in a row a statement was slow. Once can be chance: another process may have had the processor. */
  readonly #slow = new LruCache<string, { readonly times: number; readonly length: number }>(bounds.statements, {
    weights: { of: ({ length }) => length, most: bounds.statementText.sqlite },
  })

  constructor(connection: SqliteConnection, guard: SqliteGuard, heavy: Pick<HeavyReads, 'read'>, now: () => number) {
    this.#connection = connection
    this.#guard = guard
    this.#heavy = heavy
    this.#now = now
  }

  read(statement: Statement): Promise<readonly Row[]> {
    if (statement.heavy || this.#slowRuns(statement) > 1) return this.#readApart(statement)
    if (this.#waiting.length >= bounds.waiting)
      return Promise.reject(unavailable(new Error('Too many reads are waiting')))
    return new Promise((resolve, reject) => {
      if (this.#waiting.push({ statement, resolve, reject }) === 1) setImmediate(() => this.#readAll())
    })
  }

  async #readApart(statement: Statement): Promise<readonly Row[]> {
    const { rows, ms } = await this.#heavy.read(statement)
    this.#note(statement, ms)
    return rows
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
      rest = this.#readSome(all)
      // Some errors have already ended the transaction.
      if (this.#connection.database.isTransaction) this.#connection.run(commit)
    } catch (error) {
      rest = []
      for (const { reject } of all) reject(this.#guard.failure(error))
    }
    if (rest.length > 0) {
      this.#waiting = [...rest]
      setImmediate(() => {
        this.#waiting = byTurns(this.#waiting)
        this.#readAll()
      })
    }
  }

  #slowRuns({ text }: Statement): number {
    return this.#slow.get(text)?.times ?? 0
  }

  #note(statement: Statement, ms: number): void {
    const before = this.#slowRuns(statement)
    const times = ms > slice ? before + 1 : 0
    if (times !== before) this.#slow.set(statement.text, { times, length: statement.text.length })
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
        try {
          this.#connection.setLongestText(bounds.heavyReads.textBytes / (statement.longTexts ?? 0))
          const rows = this.#connection.run(statement)
          known.set(statement.text, { values: statement.values, rows })
          resolve(rows)
        } catch (error) {
          if (error instanceof TextTooLong) this.#readApart(statement).then(resolve, reject)
          else reject(this.#guard.failure(error))
        }
        const began = at
        at = performance.now()
        this.#note(statement, at - began)
      }
    }
    return rest
  }

  [Symbol.dispose](): void {
    while (this.#waiting.length > 0) this.#readAll()
    this.#connection[Symbol.dispose]()
  }
}

/**
 * Clients take turns, and those with few reads come first, so that nobody waits for all reads of a busy client. Reads
 * without a client are the service's own and come first.
 */
function byTurns(all: readonly Waiting[]): Waiting[] {
  const counts = new Map<string, number>()
  const placed = all.map(waiting => {
    const { client } = waiting.statement
    if (client === undefined) return { waiting, client: '', turn: 0 }
    const turn = counts.get(client) ?? 0
    counts.set(client, turn + 1)
    return { waiting, client, turn }
  })
  const countOf = (client: string) => counts.get(client) ?? 0
  placed.sort((one, other) => one.turn - other.turn || countOf(one.client) - countOf(other.client))
  return placed.map(({ waiting }) => waiting)
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

/** Maximum milliseconds of reading per turn. A statement that takes longer is slow. */
const slice = 5

const begin = { text: 'begin', values: [] }
const commit = { text: 'commit', values: [] }
const rollback = { text: 'rollback', values: [] }
