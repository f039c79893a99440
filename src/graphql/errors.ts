import type { GraphQLError, GraphQLFormattedError } from 'graphql'
import { AppError, type ErrorCode, fault } from '../core/errors.ts'
import { withShortEchoes } from './language/echo.ts'

export const statusOfCode = Object.freeze({
  GRAPHQL_PARSE_FAILED: 400,
  GRAPHQL_VALIDATION_FAILED: 400,
  DOCUMENT_TOO_LARGE: 400,
  DEPTH_LIMIT_EXCEEDED: 400,
  COMPLEXITY_LIMIT_EXCEEDED: 400,
  OPERATION_RESOLUTION_FAILURE: 400,
  BAD_USER_INPUT: 400,
  BAD_REQUEST: 400,
  PERSISTED_QUERY_NOT_FOUND: 400,
  DOCUMENT_NOT_TRUSTED: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  CONFLICT: 409,
  RATE_LIMITED: 429,
  SUBSCRIPTION_LIMIT_EXCEEDED: 400,
  SUBSCRIPTION_TOO_EXPENSIVE: 400,
  POSITION_UNKNOWN: 400,
  RESPONSE_TOO_LARGE: 400,
  SERVICE_UNAVAILABLE: 503,
  INTERNAL_SERVER_ERROR: 500,
})

export type Code = keyof typeof statusOfCode

/** An operation is refused, with the errors for the client. Nothing of the operation has taken effect. */
export class Refusal extends Error {
  readonly code: Code
  readonly errors: readonly GraphQLFormattedError[]

  constructor(code: Code, errors: readonly GraphQLFormattedError[], options?: ErrorOptions) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0 // a refusal is for the client
    super(errors[0]?.message ?? code, options)
    Error.stackTraceLimit = stackTraceLimit
    this.name = 'Refusal'
    this.code = code
    this.errors = errors
  }
}

export function refusal(code: Code, message: string, more: object = {}): Refusal {
  return new Refusal(code, [{ message, extensions: { code, ...more } }])
}

export function refusalFromGraphQL(code: Code, found: readonly GraphQLError[]): Refusal {
  const errors = found.map(({ message, locations }) => ({
    message: withShortEchoes(message),
    ...(locations && { locations: locations.slice(0, mostLocations) }),
    extensions: { code },
  }))
  return new Refusal(code, errors)
}

/** Maximum number of locations per error. graphql-js lists many for circular fragments and for repeated names. */
const mostLocations = 10

/** An error thrown by the core. `path` leads to the field that failed. */
export function refusalFromCore(error: AppError, path?: readonly string[]): Refusal {
  const code = codeOf[error.code]
  return new Refusal(code, [{ message: error.message, ...(path && { path }), extensions: { code } }], { cause: error })
}

/** What the client of a socket is told about an error. Operators are told what it is not. */
export function reportedRefusal(error: unknown, report: (error: AppError) => void): Refusal {
  const refused = error instanceof Refusal ? error : refusalFromCore(error instanceof AppError ? error : fault(error))
  if (refused.cause instanceof AppError) report(refused.cause)
  return refused
}

const codeOf: Readonly<Record<ErrorCode, Code>> = {
  'bad-input': 'BAD_USER_INPUT',
  conflict: 'CONFLICT',
  'condition-unmet': 'BAD_USER_INPUT',
  unauthenticated: 'UNAUTHENTICATED',
  forbidden: 'FORBIDDEN',
  'not-found': 'NOT_FOUND',
  'rate-limited': 'RATE_LIMITED',
  'answer-too-large': 'RESPONSE_TOO_LARGE',
  unavailable: 'SERVICE_UNAVAILABLE',
  maintenance: 'SERVICE_UNAVAILABLE',
  fault: 'INTERNAL_SERVER_ERROR',
}
