import { AppError, type ErrorCode } from '../../core/errors.ts'
import { sqliteCode } from './connection.ts'

/** The parts of an error that are sent to another thread. Its class and its code would be lost on the way. */
export interface SentFailure {
  readonly code: ErrorCode
  readonly message: string
  readonly detail: string
  readonly at: number | undefined
  readonly sqliteCode: number | undefined
}

export function sentFailure({ code, message, cause, at }: AppError): SentFailure {
  const detail = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  return { code, message, detail, at, sqliteCode: sqliteCode(cause) }
}

export function receivedFailure({ code, message, detail, at }: SentFailure): AppError {
  return new AppError(code, message, { cause: new Error(detail), at })
}
