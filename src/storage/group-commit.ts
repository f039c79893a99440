import { type AppError, fault, unavailable } from '../core/errors.ts'
import { type SqliteConnection, sqliteError } from './sqlite-connection.ts'
import type { Verb, Verbs } from './verb.ts'

/** The name of a verb that writes nothing: it fails, or waits, where the others do. */
export const pingVerb = '(ping)'

export interface Job {
  readonly id: number
  readonly verb: string
  readonly args: readonly never[]
}

export type Result =
  | { readonly id: number; readonly outcome: unknown }
  | { readonly id: number; readonly error: AppError }

/**
 * Runs verbs in one transaction with one durable commit, a savepoint each, so that a failing verb leaves its neighbours
 * alone. `more` is asked for further jobs until it has none: whoever arrives before the commit shares it. The results
 * exist only after the commit; when that fails, or an error undid the whole transaction, nobody's verb has happened.
 */
export function commitTogether(connection: SqliteConnection, verbs: Verbs, jobs: Job[], more: () => Job[]): Result[] {
  const taken: Job[] = []
  const results: Result[] = []
  try {
    connection.run(begin)
    for (let batch = jobs; batch.length > 0; batch = more()) {
      taken.push(...batch)
      for (const job of batch) results.push(runOne(connection, verbs[job.verb], job))
    }
    connection.run(commit)
    return results
  } catch (error) {
    if (connection.database.isTransaction) connection.database.exec('rollback')
    const lost = unavailable(error)
    return (taken.length > 0 ? taken : jobs).map(({ id }) => ({ id, error: lost }))
  }
}

function runOne(connection: SqliteConnection, verb: Verb | undefined, job: Job): Result {
  if (verb === undefined) return { id: job.id, error: fault(new Error(`No verb is called ${job.verb}`)) }
  connection.run(savepoint)
  try {
    const steps = verb(...job.args)
    let step = steps.next()
    while (!step.done) step = steps.next(connection.run(step.value))
    connection.run(release)
    return { id: job.id, outcome: step.value }
  } catch (error) {
    // Some errors (a full disk among them) end the whole transaction: then there is no savepoint to return to.
    if (!connection.database.isTransaction) throw error
    connection.run(undo)
    connection.run(release)
    return { id: job.id, error: sqliteError(error) }
  }
}

const begin = { text: 'begin immediate', values: [] }
const commit = { text: 'commit', values: [] }
const savepoint = { text: 'savepoint verb', values: [] }
const release = { text: 'release verb', values: [] }
const undo = { text: 'rollback to verb', values: [] }
