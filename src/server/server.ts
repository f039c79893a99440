import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import { AppError } from '../core/errors.ts'
import type { Randomness } from '../core/ports.ts'
import { allowOrigins } from './cors.ts'
import { answerError } from './errors.ts'
import { acceptJsonBodies } from './json-body.ts'
import { type Lifecycle, refuseUnderMaintenance } from './lifecycle.ts'
import { logAnswers } from './logging.ts'
import { answerExpectations, answerParserError } from './parser-errors.ts'
import { refuseUnrouted } from './routing.ts'

export interface ServerOptions {
  readonly bodyLimitBytes: number
  readonly corsOrigins: readonly string[]
  readonly logger: FastifyBaseLogger
  readonly lifecycle: Lifecycle
  readonly randomness: Randomness
}

/** An HTTP server that answers every request well and has no routes yet. The hooks run in the order of this page. */
export function createServer({
  bodyLimitBytes,
  corsOrigins,
  logger,
  lifecycle,
  randomness,
}: ServerOptions): FastifyInstance {
  const server: FastifyInstance = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    bodyLimit: bodyLimitBytes,
    genReqId: ({ headers }) => saneId(headers['x-request-id']) ?? randomness.id(),
    childLoggerFactory: (parent, bindings, options, { headers }) => {
      const traceparent = saneTrace(headers.traceparent)
      return parent.child(traceparent === undefined ? bindings : { ...bindings, traceparent }, options)
    },
    requestTimeout: 30_000,
    keepAliveTimeout: 72_000,
    return503OnClosing: false,
    http: {
      headersTimeout: 10_000,
      connectionsCheckingInterval: 2_000,
      maxHeaderSize: 16_384,
      // Node would answer 400 without a body; `requireHost` below says why.
      requireHostHeader: false,
    },
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
    clientErrorHandler: (error, socket) => answerParserError(error, socket, randomness),
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id)
      answerError(error, request, reply)
    },
  })
  answerExpectations(server.server)
  acceptJsonBodies(server)
  server.setErrorHandler(answerError)

  server.addHook('onRequest', (request, reply, next) => {
    lifecycle.track(reply.raw)
    reply.header('x-request-id', request.id)
    reply.header('x-content-type-options', 'nosniff')
    next()
  })
  allowOrigins(server, corsOrigins)
  requireHost(server)
  refuseUnderMaintenance(server, lifecycle)
  refuseUnrouted(server)
  logAnswers(server)
  return server
}

function requireHost(server: FastifyInstance): void {
  server.addHook('onRequest', ({ headers, raw }, _reply, next) => {
    if (headers.host !== undefined || raw.httpVersion === '1.0') return next()
    next(new AppError('bad-input', 'Host header required'))
  })
}

function saneId(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && /^[\w.:-]{1,128}$/.test(header) ? header : undefined
}

function saneTrace(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && /^[\da-f]{2}(?:-[\da-f]{2,32}){3}$/.test(header) ? header : undefined
}
