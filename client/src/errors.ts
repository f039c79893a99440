/**
 * What went wrong, as a program decides by it:
 * - `offline`: no answer came. Whether the service did anything is not known.
 * - `unauthenticated`: wrong credentials, or no valid token where one is needed.
 * - `forbidden`: this user may not do that.
 * - `notFound`: there is no such thing.
 * - `conflict`: it does not fit the present state. `status` 412: somebody has changed the resource since it was read.
 * - `rateLimited`: too many requests. `retryAfter` says when to try again.
 * - `badInput`: the service does not accept these values or this document.
 * - `server`: the service failed or is not available. `retryAfter` may say when to try again.
 */
export type ErrorKind =
  | 'offline'
  | 'unauthenticated'
  | 'forbidden'
  | 'notFound'
  | 'conflict'
  | 'rateLimited'
  | 'badInput'
  | 'server'

export interface ErrorDetails {
  readonly status?: number | undefined
  readonly code?: string | undefined
  readonly retryAfter?: number | undefined
  readonly requestId?: string | undefined
  readonly body?: unknown
  readonly key?: string | undefined
  readonly cause?: unknown
}

/** Every failure of a call. The message is for people. */
export class DuetError extends Error {
  readonly kind: ErrorKind
  /** Of the HTTP answer, if one came. */
  readonly status: number | undefined
  /** Of a GraphQL error, such as `COMPLEXITY_LIMIT_EXCEEDED`. */
  readonly code: string | undefined
  /** In seconds. */
  readonly retryAfter: number | undefined
  /** Identifies the request in the logs of the service. */
  readonly requestId: string | undefined
  /** What the service answered. */
  readonly body: unknown
  /** The Idempotency-Key of a payment that failed. Paying with this key again pays at most once. */
  readonly key: string | undefined

  constructor(kind: ErrorKind, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? {} : { cause: details.cause })
    this.name = 'DuetError'
    this.kind = kind
    this.status = details.status
    this.code = details.code
    this.retryAfter = details.retryAfter
    this.requestId = details.requestId
    this.body = details.body
    this.key = details.key
  }
}

/** Whether an error is one of the client, of this kind if one is given. */
export function isDuetError(error: unknown, kind?: ErrorKind): error is DuetError {
  return error instanceof DuetError && (kind === undefined || error.kind === kind)
}
