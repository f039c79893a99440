import { type AppError, unavailable } from '../../core/errors.ts'
import type { Verbs } from '../verb.ts'
import { type SqliteConnection, sqliteError } from './connection.ts'

/** The name of a verb that writes nothing: it fails, or waits, where the others do. */
export const pingVerb = '(ping)'

/** `now` is the time that `now_plus(seconds)` counts from in this verb. */
export type Job = readonly [id: number, verb: string, args: readonly never[], now: number]

export type Result = readonly [id: number, outcome: unknown, error?: AppError]

/**
 * Runs verbs in one transaction with one durable commit. `more` is asked for further jobs until it has none: whoever
 * arrives before the commit shares it. The results exist only after the commit; when that fails, or an error undid the
 * whole transaction, nobody's verb has happened.
 */
export function commitTogether(
  connection: SqliteConnection,
  verbs: Verbs,
  jobs: readonly Job[],
  more: () => readonly Job[],
): Result[] {
  const taken = [...jobs]
  const takeMore = () => {
    const next = more()
    taken.push(...next)
    return next
  }
  try {
    return transact(connection, verbs, jobs, takeMore, runBare)
  } catch (error) {
    if (error instanceof NotBegun) {
      while (takeMore().length > 0);
      return taken.map(refusedFor(error.cause))
    }
    // A verb threw, which is rare. Once more, each in a savepoint, which costs a fifth more, to spare its neighbours.
  }
  try {
    return transact(connection, verbs, taken, () => [], runInSavepoint)
  } catch (error) {
    return taken.map(refusedFor(error instanceof NotBegun ? error.cause : error))
  }
}

/** Another process holds the file: whoever waits by now has waited with us. */
class NotBegun extends Error {}

function refusedFor(cause: unknown): (job: Job) => Result {
  const refusal = unavailable(cause)
  return ([id]) => [id, undefined, refusal]
}

type Run = (connection: SqliteConnection, verbs: Verbs, job: Job) => Result

function transact(
  connection: SqliteConnection,
  verbs: Verbs,
  jobs: readonly Job[],
  more: () => readonly Job[],
  run: Run,
): Result[] {
  const results: Result[] = []
  beginOn(connection)
  try {
    for (let batch = jobs; batch.length > 0; batch = more()) {
      for (const job of batch) results.push(run(connection, verbs, job))
    }
    connection.run(commit)
    return results
  } catch (error) {
    if (connection.database.isTransaction) connection.database.exec('rollback')
    throw error
  }
}

function beginOn(connection: SqliteConnection): void {
  try {
    if (connection.database.isTransaction) connection.database.exec('rollback') // one that failed to roll back
    connection.run(begin)
  } catch (cause) {
    throw new NotBegun('No transaction could be begun', { cause })
  }
}

function runBare(connection: SqliteConnection, verbs: Verbs, [id, name, args, now]: Job): Result {
  const verb = verbs[name]
  if (verb === undefined) throw new Error(`No verb is called ${name}`)
  connection.setTime(now)
  const steps = verb(...args)
  let step = steps.next([])
  while (!step.done) step = steps.next(connection.run(step.value))
  return [id, step.value]
}

function runInSavepoint(connection: SqliteConnection, verbs: Verbs, job: Job): Result {
  connection.run(savepoint)
  try {
    const result = runBare(connection, verbs, job)
    connection.run(release)
    return result
  } catch (error) {
    // Some errors (a full disk among them) end the whole transaction: then there is no savepoint to return to.
    if (!connection.database.isTransaction) throw error
    connection.run(undo)
    connection.run(release)
    return [job[0], undefined, sqliteError(error)]
  }
}

const begin = { text: 'begin immediate', values: [] }
const commit = { text: 'commit', values: [] }
const savepoint = { text: 'savepoint verb', values: [] }
const release = { text: 'release verb', values: [] }
const undo = { text: 'rollback to verb', values: [] }
