import { AppError, fault, unavailable } from '../../core/errors.ts'

/**
 * What an error means for a transaction that has not tried to commit yet. The error comes from PostgreSQL, or from the
 * connection to it (then it has no SQLSTATE).
 */
export type Failure =
  | 'race' // another transaction inserted the same key, or deleted a row that this one refers to
  | 'conflict' // another transaction was in the way: a retry of the verb may succeed
  | 'lost' // the connection is gone or unusable, and the transaction with it
  | 'overloaded' // the database reports that it cannot run the statement now
  | 'defect' // our statement is wrong

export function failureOf(error: unknown): Failure {
  const state = sqlState(error)
  if (state === undefined) return 'lost'
  if (state === '23505' || state === '23503') return 'race'
  // Serialization failure, deadlock, and lock timeout. Most deadlocks end with a lock timeout here: PostgreSQL checks
  // for deadlocks only after a second, and our lock timeout is shorter.
  if (state === '40001' || state === '40P01' || state === '55P03') return 'conflict'
  // Connections to a server that has become read-only count as lost too, and so do connections whose prepared
  // statements are missing or outdated.
  if (/^(08|57P|25006|25P02|26000)/.test(state)) return 'lost'
  if (state === '0A000' && (error as Error).message.includes('cached plan')) return 'lost'
  // Insufficient resources, operator intervention and timeouts.
  return /^(53|57|58|25P03)/.test(state) ? 'overloaded' : 'defect'
}

/**
 * Converts an error of PostgreSQL to an error for the caller. The cause contains the SQLSTATE and the constraint or
 * routine, but never the values that PostgreSQL quotes.
 */
export function postgresError(error: unknown): AppError {
  if (error instanceof AppError) return error
  const state = sqlState(error)
  if (state === undefined) return unavailable(error)
  const { constraint, routine } = error as { constraint?: string; routine?: string }
  const cause = new Error(`PostgreSQL ${state} ${constraint ?? routine ?? ''}`.trim())
  // If a race still fails after all retries, it is not a race but a bug.
  return ['defect', 'race'].includes(failureOf(error)) ? fault(cause) : unavailable(cause)
}

/** The server, or the role, has no connection left for us. */
export const tooManyConnections = '53300'
export const diskFull = '53100'

export function sqlState(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  // Every SQLSTATE contains a digit; codes of the operating system (EPIPE) do not.
  return typeof code === 'string' && /^(?=.*\d)[\dA-Z]{5}$/.test(code) ? code : undefined
}
