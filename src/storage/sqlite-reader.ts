import type { Row, Statement, Value } from './sql.ts'
import { SqliteConnection } from './sqlite-connection.ts'

/**
 * Reads share one read transaction per turn of the event loop, which spares each of them SQLite's own begin and end, and
 * all but the first of those who ask the same the reading: within a transaction they would get the same. It ends early
 * when a write is acknowledged, so that everyone reads what they were told is written.
 */
export class SqliteReader implements Disposable {
  readonly #connection: SqliteConnection
  readonly #now: () => number
  #inTurn = false
  /** What this turn has read already: for each text, what it was last asked with. */
  readonly #known = new Map<string, { readonly values: readonly Value[]; readonly rows: readonly Row[] }>()

  constructor(path: string, now: () => number) {
    this.#connection = new SqliteConnection(path, 'read')
    this.#now = now
  }

  run(statement: Statement): readonly Row[] {
    if (!this.#inTurn) this.#beginTurn()
    const { text, values } = statement
    const known = this.#known.get(text)
    if (known !== undefined && values.every((value, index) => value === known.values[index])) return known.rows
    const rows = this.#connection.run(statement)
    if (this.#known.size >= mostKnown) this.#known.clear()
    this.#known.set(text, { values, rows })
    return rows
  }

  endTurn(): void {
    if (!this.#inTurn) return
    this.#inTurn = false
    this.#known.clear()
    if (this.#connection.database.isTransaction) this.#connection.run(commit)
  }

  #beginTurn(): void {
    this.#connection.run(begin)
    this.#connection.setTime(this.#now())
    this.#inTurn = true
    setImmediate(() => this.endTurn())
  }

  [Symbol.dispose](): void {
    this.endTurn()
    this.#connection[Symbol.dispose]()
  }
}

const begin = { text: 'begin', values: [] }
const commit = { text: 'commit', values: [] }

/** Answers can be large, and a turn long. */
const mostKnown = 16
