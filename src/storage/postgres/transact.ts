import { AppError, fault } from '../../core/errors.ts'
import type { Row } from '../sql.ts'
import { Rollback, type Steps, type Verb } from '../verb.ts'
import { failureOf } from './errors.ts'
import type { PostgresSession } from './session.ts'

/** A transaction whose verb has finished, but whose COMMIT got no answer. */
export class CommitInDoubt {
  readonly slot: string
  readonly attempt: number
  readonly outcome: unknown
  readonly cause: unknown

  constructor({ slot }: PostgresSession, outcome: unknown, cause: unknown) {
    this.slot = slot.id
    this.attempt = slot.attempt
    this.outcome = outcome
    this.cause = cause
  }
}

/** Runs the steps of a verb in one transaction. */
export async function transact(
  session: PostgresSession,
  isolation: Verb['isolation'],
  steps: () => Steps<unknown>,
  deadline: number,
): Promise<unknown> {
  let outcome: unknown
  try {
    session.begin(isolation, deadline)
    outcome = await drive(guarded(steps()), statement => session.run(statement, deadline))
  } catch (error) {
    await session.rollback()
    throw error
  }
  if (outcome instanceof Rollback) {
    await session.rollback()
    return outcome.outcome
  }
  try {
    await session.commit()
    return outcome
  } catch (error) {
    if (!(error instanceof AppError) && failureOf(error) === 'lost') return new CommitInDoubt(session, outcome, error)
    await session.rollback() // a statement that was sent with the commit has failed
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
