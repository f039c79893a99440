import { answerTooLarge } from '../core/errors.ts'
import type { Clock, StoreObserver } from '../core/ports.ts'
import type { Dialect } from './select/dialect.ts'
import type { Row, Statement } from './sql.ts'
import type { Timeouts } from './timeouts.ts'
import type { ArgsOf, Catalogue, OutcomeOf, Verbs } from './verb.ts'

/** What SQLite and PostgreSQL both give; `test/storage/engine.contract.ts` holds them to the same behaviour. */
export interface Engine<V extends Verbs> extends AsyncDisposable {
  /** Rows as arrays, as of a moment after every write acknowledged before the call. */
  read(statement: Statement): Promise<readonly Row[]>
  /** The single text of a statement that builds its whole answer; `answer-too-large` beyond the bound. */
  readText(statement: Statement): Promise<string>
  /** Runs a verb in one transaction and answers after its durable commit, or leaves no trace of it. */
  write<Name extends keyof V & string>(name: Name, ...args: ArgsOf<V[Name]>): Promise<OutcomeOf<V[Name]>>
  ping(): Promise<void>
  /** How it builds such answers. */
  readonly dialect: Dialect
}

export interface EngineOptions<V extends Verbs> {
  readonly catalogue: Catalogue<V>
  readonly clock: Clock
  readonly observer: StoreObserver
  readonly timeouts: Timeouts
}

export const bounds = Object.freeze({
  /** Bytes of one answer built by the database. */
  answerBytes: 8 * 1024 * 1024,
  /**
   * Prepared statements kept per connection, and characters of all of them: a prepared statement takes some 20 bytes of
   * memory per character in SQLite and 160 in PostgreSQL.
   */
  statements: 400,
  statementText: { sqlite: 1024 * 1024, postgres: 256 * 1024 },
  /** Operations that may wait for the store at once; further ones are refused at once. */
  waiting: 10_000,
})

/** The text of an answer. There is always one, unless it was too large to be handed over. */
export function answerOf([row]: readonly Row[]): string {
  if (typeof row?.[0] === 'string') return row[0]
  throw answerTooLarge()
}
