import type { Row, Statement } from './sql.ts'
import { SqliteConnection } from './sqlite-connection.ts'

/**
 * Reads share one read transaction per turn of the event loop, which spares each of them SQLite's own begin and end. It
 * ends early when a write is acknowledged, so that everyone reads what they were told is written.
 */
export class SqliteReader implements Disposable {
  readonly #connection: SqliteConnection
  readonly #now: () => number
  #inTurn = false

  constructor(path: string, now: () => number) {
    this.#connection = new SqliteConnection(path, 'read')
    this.#now = now
  }

  run(statement: Statement): readonly Row[] {
    if (!this.#inTurn) this.#beginTurn()
    return this.#connection.run(statement)
  }

  endTurn(): void {
    if (!this.#inTurn) return
    this.#inTurn = false
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
