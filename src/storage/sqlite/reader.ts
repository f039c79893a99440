import { unavailable } from '../../core/errors.ts'
import type { StoreObserver } from '../../core/ports.ts'
import { type Waits, waitsNow } from '../../lib/waits.ts'
import { bounds } from '../bounds.ts'
import type { Row, Statement } from '../sql.ts'
import { isDamage, type SqliteConnection, sqliteError } from './connection.ts'
import type { SqliteWriter } from './writer.ts'

/**
 * Collects all reads of one turn of the event loop and runs them together at its end, or as soon as there are many, in
 * one transaction. That saves SQLite's implicit begin and end for each read. Equal reads run once and share the result,
 * because inside one transaction they would return the same rows. Admitted reads are small, so they run in the thread
 * that serves.
 */
export class SqliteReader implements Disposable {
  readonly #connection: SqliteConnection
  readonly #writer: SqliteWriter
  readonly #now: () => number
  readonly #observer: StoreObserver
  #waiting: Waiting[] = []
  #isScheduled = false
  /** How often reads of this turn did not wait for its end. */
  #early = 0

  constructor(connection: SqliteConnection, writer: SqliteWriter, now: () => number, observer: StoreObserver) {
    this.#connection = connection
    this.#writer = writer
    this.#now = now
    this.#observer = observer
  }

  read(statement: Statement): Promise<readonly Row[]> {
    if (this.#waiting.length >= bounds.waiting)
      return Promise.reject(unavailable(new Error('Too many reads are waiting')))
    return new Promise((resolve, reject) => {
      const since = performance.now()
      this.#waiting.push({ statement, resolve, reject, since, waits: waitsNow() })
      if (!this.#isScheduled) this.#schedule()
      else if (this.#waiting.length >= many && this.#early < mostEarly) {
        this.#early++
        this.#readAll()
      }
    })
  }

  #schedule(): void {
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#early = 0
      this.#readAll()
      if (this.#waiting.length > 0) this.#schedule()
    })
  }

  #readAll(): void {
    const all = this.#waiting
    if (all.length === 0) return
    this.#waiting = []
    let rest: Waiting[] = []
    try {
      if (this.#writer.loss !== undefined) throw this.#writer.loss
      // A transaction that an error left open would read an old snapshot.
      if (this.#connection.database.isTransaction) this.#connection.database.exec('rollback')
      this.#connection.run(begin)
      this.#connection.setTime(this.#now())
      rest = this.#readSome(all)
      // Some errors have already ended the transaction.
      if (this.#connection.database.isTransaction) this.#connection.run(commit)
    } catch (error) {
      rest = []
      for (const { reject } of all) reject(this.#failure(error))
    }
    this.#waiting = rest
  }

  /**
   * Runs reads for a limited time, so that their results can be sent before too many of them pile up in memory. Returns
   * the reads that have to wait.
   */
  #readSome(all: readonly Waiting[]): Waiting[] {
    /** The rows of each statement's last run, and the values it ran with. */
    const known = new Map<string, { readonly values: Row; readonly rows: readonly Row[] }>()
    const rest: Waiting[] = []
    let [now, sharedBytes] = [performance.now(), 0]
    const end = now + slice
    for (const waiting of all) {
      const { statement, resolve, reject, since, waits } = waiting
      const same = statement.own ? undefined : known.get(statement.text)
      if (same !== undefined && statement.values.every((value, slot) => value === same.values[slot])) {
        sharedBytes += bytesIn(same.rows)
        if (sharedBytes > mostShared) {
          rest.push(waiting)
          continue
        }
        waits?.add('queue', since, now)
        this.#observer.read((now - since) / 1000)
        resolve(same.rows)
      } else if (now > end) {
        rest.push(waiting)
      } else {
        try {
          const rows = this.#connection.run(statement)
          if (!statement.own) known.set(statement.text, { values: statement.values, rows })
          resolve(rows)
        } catch (error) {
          reject(this.#failure(error))
        }
        const begun = now
        now = performance.now()
        waits?.add('queue', since, begun)
        waits?.add('statement', begun, now, statement.text)
        this.#observer.read((now - since) / 1000)
      }
    }
    return rest
  }

  #failure(error: unknown): Error {
    if (isDamage(error)) this.#writer.reportDamage()
    return sqliteError(error)
  }

  [Symbol.dispose](): void {
    while (this.#waiting.length > 0) this.#readAll()
    this.#connection[Symbol.dispose]()
  }
}

interface Waiting {
  readonly statement: Statement
  readonly since: number
  readonly waits: Waits | undefined
  resolve(rows: readonly Row[]): void
  reject(error: Error): void
}

/** Those of a long answer. Each of its readers copies them. */
function bytesIn([row = []]: readonly Row[]): number {
  const [value]: readonly unknown[] = row
  return value instanceof Uint8Array ? value.length : 0
}

/** Maximum milliseconds of reading per turn, apart from the last read, and bytes of answers that others get too. */
const slice = 5
const mostShared = 1024 * 1024
/**
 * Requests of a thousand connections arrive in one turn. If all of them waited for its end, each with some 10 KB, V8
 * would copy them all at each collection of garbage: they took 1.7 times as much CPU, and 27 MB more. The turn does not
 * get longer without end, because others wait for it, too.
 */
const many = 128
const mostEarly = 20

const begin = { text: 'begin', values: [] }
const commit = { text: 'commit', values: [] }
