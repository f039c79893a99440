import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { AppError, answerTooLarge, fault, unavailable } from '../../core/errors.ts'
import { LruCache } from '../../lib/lru-cache.ts'
import { UsedBefore } from '../../lib/used-before.ts'
import { bounds } from '../bounds.ts'
import type { Row, Statement } from '../sql.ts'
import type { Steps } from '../verb.ts'

/** A connection with its cache of prepared statements. All methods are synchronous, because node:sqlite is. */
export class SqliteConnection implements Disposable {
  readonly database: DatabaseSync
  readonly #statements = new LruCache<string, StatementSync>(bounds.statements, {
    of: ({ sourceSQL }) => sourceSQL.length,
    most: bounds.statementText.sqlite,
  })
  readonly #used = new UsedBefore()
  #now = 0
  #writtenTime = { at: Number.NaN, text: '' }
  #textBytes = 0

  /**
   * `busyMs`: how long to wait while another process has the file locked. Commands wait longer than a server. `readers`:
   * how many connections share the memory for pages.
   */
  constructor(path: string, mode: 'read' | 'write', busyMs = 60_000, readers = 1) {
    this.database = new DatabaseSync(path, {
      readOnly: mode === 'read',
      timeout: busyMs,
      limits: { length: bounds.answerBytes }, // limits every row and text, and so also an answer
    })
    if (mode === 'write') this.database.exec('pragma journal_mode = wal')
    this.database.exec('pragma synchronous = full; pragma foreign_keys = on')
    this.database.exec('pragma trusted_schema = off; pragma journal_size_limit = 67108864')
    // The writer needs few pages again, and the system keeps all of them in memory anyway.
    this.database.exec(`pragma cache_size = -${mode === 'write' ? 2_048 : Math.floor(65_536 / readers)}`)
    this.database.function('now_plus', { directOnly: true }, seconds => this.#timeIn(Number(seconds)))
    // Ends a read as soon as its long texts exceed the size limit together, before their JSON is built.
    this.database.function('count_text', { directOnly: true }, bytes => {
      this.#textBytes += Number(bytes)
      if (this.#textBytes > bounds.answerBytes) throw answerTooLarge()
      return 1
    })
  }

  /** Sets the time that `now_plus(seconds)` is relative to in the following statements. */
  setTime(now: number): void {
    this.#now = now
  }

  /** Verbs of the same millisecond share the text. */
  #timeIn(seconds: number): string {
    const at = this.#now + seconds * 1000
    if (at !== this.#writtenTime.at) this.#writtenTime = { at, text: new Date(at).toISOString() }
    return this.#writtenTime.text
  }

  run({ text, values }: Statement): readonly Row[] {
    this.#textBytes = 0
    const prepared = this.#prepared(text)
    if (text.endsWith(howMany)) return Array<Row>(Number(prepared.run(...values).changes)).fill([1])
    return prepared.all(...values) as unknown as readonly Row[]
  }

  /** Runs the steps of a verb, inside a transaction. */
  take<Outcome>(steps: Steps<Outcome>): Outcome {
    let step = steps.next([])
    while (!step.done) step = steps.next(this.run(step.value))
    return step.value
  }

  #prepared(text: string): StatementSync {
    const known = this.#statements.get(text)
    if (known !== undefined) return known
    const prepared = this.database.prepare(inSqlite(text))
    prepared.setReturnArrays(true)
    if (this.#used.again(text)) this.#statements.set(text, prepared)
    return prepared
  }

  [Symbol.dispose](): void {
    this.database.close()
  }
}

/**
 * Translates a statement to SQLite. Statements use the SQL that both engines share, with two exceptions that only
 * PostgreSQL knows: the `$` of parameters, and row locks, which SQLite does not need because it has a single writer.
 * Also, SQLite makes a new query plan whenever a value is bound to a plain `limit ?`, which can take longer than
 * running the statement. It does not do so if the limit is an expression. And it keeps the rows of `returning` in a table
 * of their own, which takes longer than a small change. So `returning 1` at the end of a statement asks only how many rows
 * have changed.
 */
export function inSqlite(text: string): string {
  return text
    .replace(/\$(\d+)/g, '?$1')
    .replace(/\blimit \?/gi, 'limit +?')
    .replace(/\s+for (?:update|no key update|key share)\b/gi, '')
    .replace(/ returning 1$/, '')
}

const howMany = ' returning 1'

export function sqliteError(error: unknown): AppError {
  if (error instanceof AppError) return error
  if (error instanceof Error && 'code' in error && error.code === 'ERR_INVALID_STATE') return unavailable(error) // closed
  const code = sqliteCode(error)
  if (code === 18) return answerTooLarge(error)
  return code !== undefined && passing.has(code) ? unavailable(error) : fault(error)
}

/** Whether the error says that the file is damaged or not a database. */
export function isDamage(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === 11 || code === 26
}

/** The primary result code: the low byte of the extended code. */
function sqliteCode(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : undefined
}

// BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, CORRUPT, FULL, CANTOPEN, PROTOCOL, NOTADB. These codes are caused by
// the state of the database, not by the statement.
const passing = new Set([5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 26])
