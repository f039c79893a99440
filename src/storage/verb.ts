import type { Row, Statement } from './sql.ts'

/**
 * A change of the store, written once for both engines: it yields statements and is handed their rows. SQLite drives it
 * synchronously, PostgreSQL asynchronously, each inside one transaction. A verb cannot await, catches no statement's
 * error (the transaction is lost with it), may be run again from the start, and takes and returns plain data, which can
 * cross to the thread that writes.
 */
export interface Verb {
  (...args: never[]): Steps<unknown>
  /** PostgreSQL only: for where row locks and constraints cannot express what must not change meanwhile. */
  readonly isolation?: 'serializable'
}

export type Steps<Outcome> = Generator<Statement, Outcome, readonly Row[]>

export function serializable<V extends Verb>(verb: V): V & { readonly isolation: 'serializable' } {
  return Object.assign(verb, { isolation: 'serializable' } as const)
}

export type Verbs = Readonly<Record<string, Verb>>

/** Verbs by name, and the module that exports them as `verbs`, for the thread that has to load them itself. */
export interface Catalogue<V extends Verbs = Verbs> {
  readonly url: string
  readonly verbs: V
}

export type ArgsOf<V> = V extends (...args: infer Args) => Steps<unknown> ? Args : never
export type OutcomeOf<V> = V extends (...args: never[]) => Steps<infer Outcome> ? Outcome : never
