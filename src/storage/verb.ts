import type { Row, Statement } from './sql.ts'

/**
 * A change of the store, written once for both engines: it yields statements and is handed their rows. SQLite drives it
 * synchronously, PostgreSQL asynchronously, each inside one transaction. A verb cannot await, catches no statement's
 * error (the transaction is lost with it), may be run again from the start, and returns its outcome as plain data.
 */
export type Verb<Args extends readonly Plain[] = readonly never[], Outcome = unknown> = {
  (...args: Args): Steps<Outcome>
  /** PostgreSQL only: `serializable` where row locks and constraints cannot express what must not change meanwhile. */
  isolation?: 'serializable'
}

export type Steps<Outcome> = Generator<Statement, Outcome, readonly Row[]>

/** What may cross to the thread that writes. */
export type Plain = string | number | boolean | null | undefined | readonly Plain[] | { readonly [key: string]: Plain }

// biome-ignore lint/suspicious/noExplicitAny: the one place where verbs of every signature meet
export type Verbs = Readonly<Record<string, Verb<any, unknown>>>

/** Verbs by name, and the module that exports them as `verbs`, for the thread that has to load them itself. */
export interface Catalogue<V extends Verbs = Verbs> {
  readonly url: string
  readonly verbs: V
}

export type ArgsOf<V> = V extends (...args: infer Args) => Steps<unknown> ? Args : never
export type OutcomeOf<V> = V extends (...args: never[]) => Steps<infer Outcome> ? Outcome : never
