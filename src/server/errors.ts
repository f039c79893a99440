import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { AppError, type ErrorCode, fault } from '../core/errors.ts'

/** The only place where a code becomes a status of HTTP. */
export const statusOf: Readonly<Record<ErrorCode, number>> = {
  'bad-input': 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  conflict: 409,
  'rate-limited': 429,
  'answer-too-large': 400,
  unavailable: 503,
  maintenance: 503,
  fault: 500,
}

const retryAfterSeconds: Partial<Record<ErrorCode, number>> = { unavailable: 1, maintenance: 60 }

/** Answers any error that reaches the edge: ours by its code, the server's own by a fixed sentence, all else as 500. */
export function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const refusal = refusalOf(error)
  if (refusal !== undefined) {
    if (refusal.close) reply.header('connection', 'close')
    return reply.code(refusal.status).send({ error: refusal.text })
  }
  const known = error instanceof AppError ? error : fault(error)
  const status = statusOf[known.code]
  if (known.code === 'fault') request.log.error({ err: known.cause ?? known }, 'A request met a fault')
  else if (known.code === 'unavailable') request.log.warn({ err: known.cause ?? known }, 'A request was refused')
  const retryAfter = retryAfterSeconds[known.code]
  if (retryAfter !== undefined) reply.header('retry-after', String(retryAfter))
  return reply.code(status).send({ error: known.message })
}

interface Refusal {
  readonly status: number
  readonly text: string
  readonly close?: true
}

// What the server refuses before any of our code runs. The texts are ours: the server's own may quote the input.
function refusalOf(error: unknown): Refusal | undefined {
  const { code, statusCode, validation } = (error ?? {}) as Partial<FastifyError>
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return { status: 413, text: 'Request body is too large', close: true }
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return { status: 415, text: 'Content-Type must be application/json' }
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return { status: 400, text: 'Request body does not match its Content-Length', close: true }
    case 'FST_ERR_BAD_URL':
      return { status: 400, text: 'Malformed URL' }
  }
  if (validation !== undefined) return { status: 400, text: String((error as Error).message) }
  // Node reports a body that broke off; nobody is left to read the answer, but it must not count as our fault.
  if (code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE')
    return { status: 400, text: 'Request was aborted' }
  if (error instanceof AppError || statusCode === undefined || statusCode < 400 || statusCode >= 500) return undefined
  return { status: statusCode, text: 'Bad request' }
}
