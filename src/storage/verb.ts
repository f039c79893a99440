import type { Row, Statement } from './sql.ts'

/**
 * A write operation, written once for both engines. It is a generator: it yields statements and receives their rows.
 * Each engine runs it inside one transaction, SQLite synchronously and PostgreSQL asynchronously. A verb cannot await.
 * It must not catch the error of a statement, because the error ends the transaction. It may be run again from the
 * start. Its arguments and result are plain data, because they are sent to and from the writer thread.
 */
export interface Verb {
  (...args: never[]): Steps<unknown>
  /** PostgreSQL only. For verbs that row locks and constraints cannot protect from concurrent changes. */
  readonly isolation?: 'serializable'
}

export type Steps<Outcome> = Generator<Statement, Outcome, readonly Row[]>

export function serializable<V extends Verb>(verb: V): V & { readonly isolation: 'serializable' } {
  return Object.assign(verb, { isolation: 'serializable' } as const)
}

export type Verbs = Readonly<Record<string, Verb>>

/** Verbs by name, and the URL of the module that exports them as `verbs`. The writer thread imports it itself. */
export interface Catalogue<V extends Verbs = Verbs> {
  readonly url: string
  readonly verbs: V
}

export type ArgsOf<V> = V extends (...args: infer Args) => Steps<unknown> ? Args : never
export type OutcomeOf<V> = V extends (...args: never[]) => Steps<infer Outcome> ? Outcome : never
