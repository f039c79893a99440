import type { FastifyBaseLogger, FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { AppError, type ErrorCode, fault } from '../core/errors.ts'
import { challenge } from './authentication.ts'
import { traceOf } from './logging.ts'

/** The only place that maps an error code to an HTTP status. */
export const statusOf: Readonly<Record<ErrorCode, number>> = {
  'bad-input': 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  conflict: 409,
  'condition-unmet': 412,
  'rate-limited': 429,
  'answer-too-large': 400,
  unavailable: 503,
  maintenance: 503,
  fault: 500,
}

const retryAfterSeconds: Partial<Record<ErrorCode, number>> = { unavailable: 1, maintenance: 60 }

/** Sends an error response. All errors have this shape. */
export function sendError(reply: FastifyReply, status: number, text: string): FastifyReply {
  return reply.code(status).send({ error: text })
}

/** Answers every error of a request: our own by its code, one of Fastify with a fixed text, any other with 500. */
export function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  keepOpen(reply)
  const known = fastifyErrorOf(error, request)
  if (known !== undefined) return sendError(reply, known[0], known[1])
  const appError = error instanceof AppError ? error : fault(error)
  prepareErrorAnswer(appError, request, reply)
  return sendError(reply, statusOf[appError.code], appError.message)
}

/**
 * Fastify closes the connection after it refuses a body. If it stays open, Node reads and discards the rest of the
 * body, up to the request timeout. So a client that is still sending can read our response and does not get a reset.
 */
export function keepOpen(reply: FastifyReply): void {
  if (reply.hasHeader('connection')) reply.header('connection', reply.raw.shouldKeepAlive ? 'keep-alive' : 'close')
}

/** Logs one of our errors and sets the headers that belong to its code. It does not write the body. */
export function prepareErrorAnswer(error: AppError, request: FastifyRequest, reply: FastifyReply): void {
  const { code } = error
  reportFailure(error, request.log, traceOf(request))
  if (code === 'fault') dropHeadersOfHandler(reply)
  if (code === 'unauthenticated') challenge(request, reply, error)
  const retryAfter = error.retryAfterSeconds ?? retryAfterSeconds[code]
  if (retryAfter !== undefined) reply.header('retry-after', String(retryAfter))
}

/** Logs the details that callers do not get. */
export function reportFailure(error: AppError, log: FastifyBaseLogger, trace: object = {}): void {
  const { code, cause: err = error } = error
  if (code === 'fault') log.error({ ...trace, err }, 'A request failed with an internal error')
  else if (code === 'unavailable') log.warn({ ...trace, err }, 'A request failed because the service is unavailable')
}

// Errors that Fastify raises before our code runs. The texts are our own, because Fastify's may quote the input.
function fastifyErrorOf(error: unknown, { raw }: FastifyRequest): readonly [status: number, text: string] | undefined {
  // The client disconnected while it sent the body. Nobody reads the response, but this must not count as our fault.
  if (raw.errored !== null && error === raw.errored) return [400, 'Request was aborted']
  const { code, statusCode = 500 } = (error ?? {}) as Partial<FastifyError>
  if (!code?.startsWith('FST_') || statusCode >= 500) return undefined
  return fastifyErrors[code] ?? [statusCode, 'Bad request']
}

const fastifyErrors: Readonly<Record<string, readonly [status: number, text: string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: [413, 'Request body is too large'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [415, 'Content-Type must be application/json'],
  FST_ERR_CTP_INVALID_JSON_BODY: [400, 'Request body is not valid JSON'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [400, 'Request body does not match its Content-Length'],
}

/**
 * The handler may have set headers before it failed. They describe a response that is not sent, and one of them may have
 * caused the failure.
 */
export function dropHeadersOfHandler(reply: FastifyReply): void {
  for (const name of Object.keys(reply.getHeaders())) if (!ours.test(name)) reply.removeHeader(name)
  reply.header('cache-control', 'no-store')
}

const ours = /^(x-request-id|x-content-type-options|vary|access-control-.+|ratelimit.*)$/
