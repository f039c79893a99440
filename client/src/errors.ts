/**
 * The kind of a failure, for decisions in a program:
 * - `offline`: no answer came. It is not known whether the service did anything.
 * - `unauthenticated`: wrong credentials, or no valid token where one is needed.
 * - `forbidden`: this user may not do that.
 * - `notFound`: the resource does not exist.
 * - `conflict`: the current state does not allow it. `status` 412, or in GraphQL `code` `CONFLICT`: another client has
 *   changed it since it was read.
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
  /** The status of the HTTP answer, if there was one. */
  readonly status: number | undefined
  /** The code of a GraphQL error, such as `COMPLEXITY_LIMIT_EXCEEDED`. */
  readonly code: string | undefined
  /** Seconds to wait before the next attempt. */
  readonly retryAfter: number | undefined
  /** Identifies the request in the logs of the service. */
  readonly requestId: string | undefined
  /** The body of the answer. */
  readonly body: unknown
  /** The Idempotency-Key of a failed payment. Another payment with this key pays at most once. */
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

/** Whether an error is a `DuetError`, and of this kind if one is given. */
export function isDuetError(error: unknown, kind?: ErrorKind): error is DuetError {
  return error instanceof DuetError && (kind === undefined || error.kind === kind)
}
