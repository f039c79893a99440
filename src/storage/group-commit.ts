import { type AppError, unavailable } from '../core/errors.ts'
import { type SqliteConnection, sqliteError } from './sqlite-connection.ts'
import type { Verbs } from './verb.ts'

/** The name of a verb that writes nothing: it fails, or waits, where the others do. */
export const pingVerb = '(ping)'

export type Job = readonly [id: number, verb: string, args: readonly never[]]

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
  } catch {
    // A verb threw, which is rare. Once more, each in a savepoint, which costs a third more, to spare its neighbours.
  }
  try {
    return transact(connection, verbs, taken, () => [], runInSavepoint)
  } catch (error) {
    const lost = unavailable(error)
    return taken.map(([id]) => [id, undefined, lost])
  }
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
  connection.run(begin)
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

function runBare(connection: SqliteConnection, verbs: Verbs, [id, name, args]: Job): Result {
  const verb = verbs[name]
  if (verb === undefined) throw new Error(`No verb is called ${name}`)
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
