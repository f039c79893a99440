import { AppError, fault } from '../../core/errors.ts'
import { outcomeUnknown } from '../engine.ts'
import { type Row, type Statement, sql } from '../sql.ts'
import { Rollback, type Steps } from '../verb.ts'
import { failureOf } from './errors.ts'
import type { Answer } from './exchange.ts'
import type { PostgresSession } from './session.ts'

export interface TransactionTimes {
  readonly deadline: number
  /** The COMMIT has its own time, because it is unknown whether one that is cut off has happened. */
  readonly commitMs: number
  /** Statements that set the timeouts of this transaction in PostgreSQL. */
  readonly settings: readonly Statement[]
}

/** Runs the steps of a verb in one transaction. */
export async function transact(
  session: PostgresSession,
  steps: Steps<unknown>,
  { deadline, commitMs, settings }: TransactionTimes,
): Promise<unknown> {
  /** Statements that travel with the next one whose rows are read. */
  let queued: Statement[] = [begin, ...settings]
  /** Answers to statements that were sent because they were expected to be next, in their order. */
  let ahead: { readonly statement: Statement; readonly rows: readonly Row[] }[] = []
  let isBegun = false
  const send = (statements: readonly Statement[], until: number) => {
    const all = [...queued, ...statements]
    queued = []
    isBegun = true
    return session.send(all, until)
  }
  const run = async (statement: Statement): Promise<readonly Row[]> => {
    const first = ahead.shift()
    if (first?.statement === statement) return first.rows
    ahead = []
    if (statement.unread) {
      queued.push(statement)
      return []
    }
    const expected: Statement[] = []
    for (let next: Statement | undefined = statement; next !== undefined; next = next.next) expected.push(next)
    const answers = (await send(expected, deadline)).slice(-expected.length)
    ahead = expected.map((statement, at) => ({ statement, rows: answers[at]?.rows ?? [] }))
    return ahead.shift()?.rows ?? []
  }
  const undo = async () => {
    queued = []
    if (session.broken || !isBegun) return
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
    await send([commit], performance.now() + commitMs).then(requireCommit, refuseOrDoubt)
    return outcome
  } catch (error) {
    await undo()
    throw error
  }
}

function requireCommit(answers: readonly Answer[]): void {
  const command = answers.at(-1)?.command
  if (command !== 'COMMIT') throw fault(new Error(`COMMIT was answered with ${command}`))
}

/** If the answer to the COMMIT is lost, nobody knows whether it has happened. After any other error it has not. */
function refuseOrDoubt(error: unknown): never {
  throw failureOf(error) === 'lost' ? outcomeUnknown(error) : error
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
