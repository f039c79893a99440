import { DuetError, type ErrorKind } from './errors.ts'
import type { Answer } from './http.ts'

/** The error for an answer with a status of 400 or above. */
export function refusal({ status, headers, body }: Answer): DuetError {
  const { error, errors } = (body ?? {}) as { error?: string; errors?: readonly GraphQLError[] }
  return errorOf(errors, error ?? `The service answered ${status}.`, {
    status,
    retryAfter: retryAfterIn({ headers }),
    requestId: requestIdIn({ headers }),
    body,
  })
}

export interface GraphQLError {
  readonly message: string
  readonly extensions?: { readonly code?: string }
}

/** The error for a refusal, over HTTP or in a message over a socket. */
export function errorOf(
  errors: readonly GraphQLError[] | undefined,
  message: string,
  details: { status?: number; retryAfter?: number | undefined; requestId?: string | undefined; body: unknown },
): DuetError {
  const [first] = errors ?? []
  const code = first?.extensions?.code
  const status = details.status ?? statusOfCode[code ?? ''] ?? 400
  return new DuetError(kindOf(status), first?.message ?? message, { ...details, code })
}

function kindOf(status: number): ErrorKind {
  return status >= 500 ? 'server' : (kinds[status] ?? 'badInput')
}

const kinds: Readonly<Record<number, ErrorKind>> = {
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'notFound',
  409: 'conflict',
  412: 'conflict',
  429: 'rateLimited',
}

/** The HTTP status for an error code over a socket. All other codes are 400. */
const statusOfCode: Readonly<Record<string, number>> = {
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  CONFLICT: 409,
  RATE_LIMITED: 429,
  INTERNAL_SERVER_ERROR: 500,
  SERVICE_UNAVAILABLE: 503,
}

export function retryAfterIn(answer: Pick<Answer, 'headers'> | undefined): number | undefined {
  const header = answer?.headers.get('retry-after') ?? ''
  return /^\d+$/.test(header) ? Number(header) : undefined
}

export function requestIdIn(answer: Pick<Answer, 'headers'> | undefined): string | undefined {
  return answer?.headers.get('x-request-id') ?? undefined
}
