import { answerTooLarge } from '../core/errors.ts'
import type { Clock, StoreObserver } from '../core/ports.ts'
import type { Dialect } from './dialect.ts'
import type { Row, Statement } from './sql.ts'
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
}

export const bounds = Object.freeze({
  /** Bytes of one answer built by the database. */
  answerBytes: 8 * 1024 * 1024,
  /** Prepared statements kept per connection, and characters of all of them: wide ones take a lot of memory. */
  statements: 400,
  statementText: 4 * 1024 * 1024,
  /** Operations that may wait for the store at once; further ones are refused at once. */
  waiting: 10_000,
  /** Milliseconds within which an operation must have got through all but its commit. */
  patience: 1_200,
  /** Milliseconds that must be left of it to begin at all. */
  leastTime: 200,
  /** Milliseconds for a commit. */
  commit: 400,
  /** Milliseconds after which a write to a disk that says nothing is given up. */
  hang: 5_000,
  /** About how many milliseconds to wait for another transaction's lock before giving way and trying again. */
  lockWait: 250,
  /** Milliseconds, from then or from the end of patience, to find out about a commit whose answer was lost. */
  doubt: 700,
})

/** The text of an answer. There is always one, unless it was too large to be handed over. */
export function answerOf([row]: readonly Row[]): string {
  if (typeof row?.[0] === 'string') return row[0]
  throw answerTooLarge()
}
