import { AppError, answerTooLarge } from '../core/errors.ts'
import type { Clock, StoreObserver } from '../core/ports.ts'
import type { Answer } from '../core/selection.ts'
import type { Dialect } from './select/dialect.ts'
import type { Row, Statement } from './sql.ts'
import type { Timeouts } from './timeouts.ts'
import type { ArgsOf, Catalogue, OutcomeOf, Verbs } from './verb.ts'

/** The interface of SQLite and PostgreSQL. `test/storage/engine.test.ts` checks that they behave alike. */
export interface Engine<V extends Verbs> extends AsyncDisposable {
  /** Returns rows as arrays. The read sees every write that was acknowledged before the call. */
  read(statement: Statement): Promise<readonly Row[]>
  /**
   * Runs a verb in one transaction. Resolves after the durable commit. If it rejects, nothing was written, unless it
   * rejects with `outcomeUnknown`.
   */
  write<Name extends keyof V & string>(name: Name, ...args: ArgsOf<V[Name]>): Promise<OutcomeOf<V[Name]>>
  ping(): Promise<void>
  /** How this engine builds JSON answers in SQL. */
  readonly dialect: Dialect
  /** The database file, if there is one. */
  readonly path?: string
  /** How many connections are in use now, and how many reads and writes wait for one. Missing if it has none. */
  readonly poolUse?: { inUse(): number; waiting(): number }
}

export interface EngineOptions<V extends Verbs> {
  readonly catalogue: Catalogue<V>
  readonly clock: Clock
  readonly observer: StoreObserver
  readonly timeouts: Timeouts
}

/** The statement always returns an answer, except when it is too large. */
export function answerOf([row = []]: readonly Row[]): Answer {
  const [answer]: readonly unknown[] = row
  if (typeof answer === 'string' || answer instanceof Uint8Array) return answer
  throw answerTooLarge()
}

/** The answer to a commit was lost. The change may have happened. */
export function outcomeUnknown(cause: unknown): AppError {
  const message = 'The outcome is unknown. Read before you repeat, or repeat with the same Idempotency-Key.'
  return new AppError('unavailable', message, { cause })
}
