import { AppError, fault } from '../../core/errors.ts'
import { outcomeUnknown } from '../engine.ts'
import { type Row, type Statement, sql } from '../sql.ts'
import { Rollback, type Steps } from '../verb.ts'
import { failureOf } from './errors.ts'
import type { PostgresSession } from './session.ts'

/**
 * Runs the steps of a verb in one transaction. `settings`: statements that set its timeouts. The COMMIT has its own time,
 * because it is unknown whether one that is cut off has happened.
 */
export async function transact(
  session: PostgresSession,
  settings: readonly Statement[],
  steps: Steps<unknown>,
  { deadline, commitMs }: { readonly deadline: number; readonly commitMs: number },
): Promise<unknown> {
  /** Statements that travel with the next one whose rows are read. */
  let queued: Statement[] = [begin, ...settings]
  /** Rows of statements that were sent because they were expected to be next, in their order. */
  let ahead: (readonly [statement: Statement, rows: readonly Row[]])[] = []
  let isBegun = false
  const send = (statements: readonly Statement[], until: number, kind?: 'commit') => {
    const all = [...queued, ...statements]
    queued = []
    isBegun = true
    return session.send(all, until, kind)
  }
  const run = async (statement: Statement): Promise<readonly Row[]> => {
    const [expected, known] = ahead.shift() ?? []
    if (expected === statement && known !== undefined) return known
    ahead = []
    if (statement.queued) {
      queued.push(statement)
      return []
    }
    const first = queued.length
    const sent: Statement[] = []
    for (let next: Statement | undefined = statement; next !== undefined; next = next.next) sent.push(next)
    const answers = await send(sent, deadline)
    ahead = sent.slice(1).map((next, at) => [next, answers[first + 1 + at] ?? []])
    return answers[first] ?? []
  }
  const undo = async () => {
    queued = []
    if (!isBegun || session.broken) return
    await send([rollback], performance.now() + commitMs).catch(() => {
      session.broken = true
    })
  }
  try {
    const outcome = await drive(guarded(steps), run)
    if (outcome instanceof Rollback) {
      await undo()
      return outcome.outcome
    }
    // The commit is never sent together with the beginning: on a dead connection, the verb can still run again.
    if (!isBegun) await send([], deadline)
    await send([commit], performance.now() + commitMs, 'commit').catch(error => {
      // If the answer to the COMMIT is lost, nobody knows whether it has happened. After any other error it has not.
      throw failureOf(error) === 'lost' ? outcomeUnknown(error) : error
    })
    return outcome
  } catch (error) {
    await undo()
    throw error
  }
}

/** Runs each step and gives its rows to the next one. */
export async function drive<Step, Outcome>(
  steps: Generator<Step, Outcome, readonly Row[]>,
  run: (step: Step) => Promise<readonly Row[]>,
): Promise<Outcome> {
  for (let rows: readonly Row[] = []; ; ) {
    const step = steps.next(rows)
    if (step.done) return step.value
    rows = await run(step.value)
  }
}

// An error thrown by a verb itself is a bug of ours. It must not be mistaken for a lost connection.
function* guarded<Outcome>(steps: Steps<Outcome>): Steps<Outcome> {
  try {
    return yield* steps
  } catch (error) {
    throw error instanceof AppError ? error : fault(error)
  }
}

/**
 * Names the isolation level, because the database may have another default. At a higher level, a transaction that has
 * waited for a row or key of another one fails, instead of going on with what the other one wrote.
 */
export const begin = sql`begin isolation level read committed`
const commit = sql`commit`
const rollback = sql`rollback`
