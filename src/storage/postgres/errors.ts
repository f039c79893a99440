import { AppError, fault, unavailable } from '../../core/errors.ts'

/**
 * What an error of PostgreSQL, or of the way to it (an error without a state), means for a transaction that has not tried
 * to commit.
 */
export type Failure =
  | 'race' // another transaction wrote what this one had found free, or removed what it refers to
  | 'conflict' // another transaction was in the way: the same verb may succeed when run again
  | 'lost' // the connection is gone or of no more use, and the transaction with it
  | 'overloaded' // the database answers that it cannot now
  | 'defect' // our statement is wrong

export function failureOf(error: unknown): Failure {
  const state = sqlState(error)
  if (state === undefined) return 'lost'
  if (state === '23505' || state === '23503') return 'race'
  // Serialization failure, deadlock, and a lock not had in time, which is how most deadlocks end here: PostgreSQL looks
  // for them after a second only, and waiters give way earlier.
  if (state === '40001' || state === '40P01' || state === '55P03') return 'conflict'
  // So is a connection to a server that turned read-only, and one whose prepared statements are gone or out of date.
  if (/^(08|57P|25006|25P02|26000)/.test(state) || isStalePlan(error)) return 'lost'
  // Resources, operator intervention and time-outs.
  return /^(53|57|58|25P03)/.test(state) ? 'overloaded' : 'defect'
}

/** What callers are told. The cause names the state and the place, never the values that PostgreSQL quotes. */
export function postgresError(error: unknown): AppError {
  if (error instanceof AppError) return error
  const state = sqlState(error)
  if (state === undefined) return unavailable(error)
  const { constraint, routine } = error as { constraint?: string; routine?: string }
  const cause = new Error(`PostgreSQL ${state} ${constraint ?? routine ?? ''}`.trim())
  // A race that repeats itself is none.
  return ['defect', 'race'].includes(failureOf(error)) ? fault(cause) : unavailable(cause)
}

function isStalePlan(error: unknown): boolean {
  return sqlState(error) === '0A000' && (error as Error).message.includes('cached plan')
}

function sqlState(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  // Every state has a digit; the system's own codes (EPIPE) have none.
  return typeof code === 'string' && /^(?=.*\d)[\dA-Z]{5}$/.test(code) ? code : undefined
}
