import type { Row, Statement } from './sql.ts'

/**
 * A write operation, written once for both engines. It is a generator: it yields statements and receives their rows.
 * Each engine runs it inside one transaction, SQLite synchronously and PostgreSQL asynchronously. A verb cannot await.
 * It must not catch the error of a statement, because the error ends the transaction. It may be run again from the
 * start. Its arguments and result are plain data, because they are sent to and from the writer thread.
 */
export type Verb = (...args: never[]) => Steps<unknown>

/** The result of a verb that undoes all its changes. The caller gets the outcome. */
export class Rollback<Outcome> {
  readonly outcome: Outcome

  constructor(outcome: Outcome) {
    this.outcome = outcome
  }
}

export type Steps<Outcome> = Generator<Statement, Outcome, readonly Row[]>

export type Verbs = Readonly<Record<string, Verb>>

/** Verbs by name, and the URL of the module that exports them as `verbs`. The writer thread imports it itself. */
export interface Catalogue<V extends Verbs = Verbs> {
  readonly url: string
  readonly verbs: V
  /** The row that a write locks first, if many may want the same one at once: the id of a post, or a name. */
  readonly rowOf?: (name: keyof V, args: readonly never[]) => number | string | undefined
}

export type ArgsOf<V> = V extends (...args: infer Args) => Steps<unknown> ? Args : never
export type OutcomeOf<V> = V extends (...args: never[]) => Steps<infer Outcome> ? Unwrapped<Outcome> : never

type Unwrapped<Outcome> = Outcome extends Rollback<infer Inner> ? Inner : Outcome
