import { type AppError, unavailable } from '../../core/errors.ts'
import { Rollback, type Verbs } from '../verb.ts'
import { type SqliteConnection, sqliteError } from './connection.ts'

/** The name of a verb that changes nothing. It is queued like the other verbs, so it fails or waits when they do. */
export const pingVerb = '(ping)'

/** `now` is the time that `now_plus(seconds)` is relative to in this verb. */
export type Job = readonly [id: number, verb: string, args: readonly never[], now: number]

export type Result = readonly [id: number, outcome: unknown, error?: AppError]

/**
 * Runs several verbs in one transaction with one durable commit (group commit). Calls `more` until it returns no more
 * jobs, so jobs that arrive before the commit share it. Results are returned only after the commit, `onCommit` is called
 * before it. If it fails, or an error rolls back the whole transaction, none of the verbs took effect.
 */
export function commitTogether(
  connection: SqliteConnection,
  verbs: Verbs,
  jobs: readonly Job[],
  more: () => readonly Job[],
  onCommit: () => unknown = () => {},
): Result[] {
  const taken = [...jobs]
  const runAll = (run: typeof runBare): Result[] => {
    const results: Result[] = []
    try {
      for (const job of taken) {
        results.push(run(connection, verbs, job))
        if (results.length === taken.length) taken.push(...more()) // the loop goes on with them
      }
      onCommit()
      connection.run(commit)
      return results
    } catch (error) {
      if (connection.database.isTransaction) connection.database.exec('rollback')
      throw error
    }
  }
  try {
    beginOn(connection)
  } catch (error) {
    // Usually another process has the file locked. Jobs that have arrived meanwhile have waited just as long.
    for (let next = more(); next.length > 0; next = more()) taken.push(...next)
    return taken.map(refusedFor(error))
  }
  try {
    return runAll(runBare)
  } catch {
    // A verb threw an error or must be rolled back, which is rare. Run all verbs again, each in a savepoint, so that
    // this affects only that verb. Savepoints cost about 20 % more time, so they are not used in the first attempt.
  }
  try {
    beginOn(connection)
    return runAll(runInSavepoint)
  } catch (error) {
    return taken.map(refusedFor(error))
  }
}

function refusedFor(cause: unknown): (job: Job) => Result {
  const refusal = unavailable(cause)
  return ([id]) => [id, undefined, refusal]
}

function beginOn(connection: SqliteConnection): void {
  // Roll back an earlier transaction whose rollback failed.
  if (connection.database.isTransaction) connection.database.exec('rollback')
  connection.run(begin)
}

function runBare(connection: SqliteConnection, verbs: Verbs, job: Job): Result {
  const outcome = outcomeOf(connection, verbs, job)
  if (outcome instanceof Rollback) throw new Error('The verb needs a savepoint')
  return [job[0], outcome]
}

function outcomeOf(connection: SqliteConnection, verbs: Verbs, [, name, args, now]: Job): unknown {
  const verb = verbs[name]
  if (verb === undefined) throw new Error(`No verb is called ${name}`)
  connection.setTime(now)
  return connection.take(verb(...args))
}

function runInSavepoint(connection: SqliteConnection, verbs: Verbs, job: Job): Result {
  connection.run(savepoint)
  try {
    const outcome = outcomeOf(connection, verbs, job)
    if (outcome instanceof Rollback) connection.run(undo)
    connection.run(release)
    return [job[0], outcome instanceof Rollback ? outcome.outcome : outcome]
  } catch (error) {
    // Some errors, such as a full disk, roll back the whole transaction. Then there is no savepoint to roll back to.
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
