/**
 * The only error type that passes between the folders of `src`. `message` is public and may be shown to any caller;
 * details for operators are in `cause`. Each interface maps the code to its own status in one exhaustive table.
 */
export class AppError extends Error {
  readonly code: ErrorCode
  readonly retryAfterSeconds: number | undefined
  /** The index of the change that failed, if the operation has several changes. */
  readonly at: number | undefined

  constructor(
    code: ErrorCode,
    message: string,
    options?: ErrorOptions & Partial<Pick<AppError, 'retryAfterSeconds' | 'at'>>,
  ) {
    super(message, options)
    this.name = 'AppError'
    this.code = code
    this.retryAfterSeconds = options?.retryAfterSeconds
    this.at = options?.at
  }
}

/** An invalid setting, or a file that a setting names. The message is one line that names the variable. It never contains a secret. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

export type ErrorCode =
  | 'bad-input'
  | 'unauthenticated'
  | 'forbidden'
  | 'not-found'
  | 'conflict'
  | 'condition-unmet'
  | 'rate-limited'
  | 'answer-too-large'
  | 'unavailable'
  | 'maintenance'
  | 'fault'

/** The store, or another part that the request needs, does not respond now. A retry may succeed. */
export function unavailable(cause: unknown): AppError {
  return new AppError('unavailable', 'Service temporarily unavailable. Try again later.', { cause })
}

export function isOutage(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable'
}

export function present<Item>(item: Item | undefined, absent: () => AppError): Item {
  if (item === undefined) throw absent()
  return item
}

/** A defect on our side. Callers never see its cause. */
export function fault(cause: unknown): AppError {
  return new AppError('fault', 'Internal server error', { cause })
}

export function answerTooLarge(cause?: unknown): AppError {
  return new AppError('answer-too-large', 'The answer is too large.', { cause })
}

export function tooManyRequests(retryAfterSeconds: number): AppError {
  return new AppError('rate-limited', 'Too many requests. Try again later.', { retryAfterSeconds })
}
