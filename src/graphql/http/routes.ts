import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { AppError, type ErrorCode, fault } from '../../core/errors.ts'
import type { Fields } from '../../core/input.ts'
import type { Answer } from '../../core/selection.ts'
import { preferredType } from '../../http/accept.ts'
import { answerError, keepOpen, prepareErrorAnswer, statusOf } from '../../http/errors.ts'
import type { Lifecycle } from '../../http/lifecycle.ts'
import { takeUpgrade } from '../../http/upgrades.ts'
import { release } from '../../lib/v8.ts'
import { Refusal, refusal, refusalFromCore, statusOfCode } from '../errors.ts'
import type { Executor } from '../execute.ts'
import type { Sockets } from '../live/sockets.ts'
import { type OperationRequest, operationIn } from '../request.ts'

export interface GraphQLServer {
  readonly server: FastifyInstance
  readonly authenticate: onRequestHookHandler
  readonly executor: Executor
  /** Sends a page to a browser that asks for HTML. Missing if there is no page. */
  readonly showPage: ((request: FastifyRequest, reply: FastifyReply) => unknown) | undefined
  readonly sockets: Sockets
  readonly lifecycle: Lifecycle
}

/** `/graphql`: one operation per request. POST runs queries and mutations, GET only queries. */
export function serveGraphQL(parts: GraphQLServer): void {
  const { server, authenticate, executor, showPage, sockets, lifecycle } = parts
  const options = { onRequest: authenticate, errorHandler: answerFailure }

  const answer = async (asked: OperationRequest, request: FastifyRequest, reply: FastifyReply): Promise<Answer> => {
    const operation = executor.prepare(asked)
    request.operation = operation
    if (operation.kind === 'subscription') throw refusal('BAD_REQUEST', 'Subscriptions run over WebSocket.')
    if (operation.kind === 'mutation' && request.method !== 'POST') {
      reply.header('allow', 'POST')
      throw refusal('BAD_REQUEST', 'A mutation must be sent by POST.')
    }
    const data = await executor.execute(operation, asked.variables, request.actor)
    reply.type(answerType(request))
    if (typeof data === 'string') return `{"data":${data}}`
    const whole = Buffer.concat([opening, data, closing])
    reply.raw.once('close', () => release(whole))
    return whole
  }

  server.post('/graphql', options, (request, reply) => answer(operationIn(request.body), request, reply))

  // A socket's token is checked after the socket is open. If the upgrade failed, a browser could not see why.
  const authenticateUnlessSocket: onRequestHookHandler = function (request, reply, next) {
    if (request.raw.socketUpgrade === undefined) return authenticate.call(this, request, reply, next)
    next()
  }

  server.get('/graphql', { ...options, onRequest: authenticateUnlessSocket }, async (request, reply) => {
    if (request.raw.socketUpgrade !== undefined) sockets.check(request.raw)
    const upgrade = takeUpgrade(request, reply, lifecycle)
    if (upgrade !== undefined) return sockets.accept(request.raw, upgrade)
    if (showPage !== undefined && preferredType(request.headers.accept, [...answerTypes, page]) === page) {
      return showPage(request, reply)
    }
    const { variables, extensions, ...others } = request.query as Fields
    const asked = {
      ...others,
      variables: parsed('variables', variables),
      extensions: parsed('extensions', extensions),
    }
    return answer(operationIn(asked), request, reply)
  })
}

const [opening, closing] = [Buffer.from('{"data":'), Buffer.from('}')]

const answerTypes = ['application/json', 'application/graphql-response+json'] as const
const page = 'text/html'

function answerType({ headers }: FastifyRequest): string {
  return `${preferredType(headers.accept, answerTypes) ?? answerTypes[0]}; charset=utf-8`
}

function parsed(name: string, text: unknown): unknown {
  if (text === undefined) return undefined
  try {
    if (typeof text === 'string') return JSON.parse(text)
  } catch {}
  throw refusal('BAD_REQUEST', `${name} is not valid JSON.`)
}

/** Errors of an operation have the GraphQL format. Errors of the HTTP request have the format of all other paths. */
function answerFailure(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const refused = refusalIn(error, request)
  if (refused === undefined) return answerError(error, request, reply)
  keepOpen(reply)
  const { cause } = refused
  if (cause instanceof AppError) prepareErrorAnswer(cause, request, reply)
  const status = cause instanceof AppError ? statusOf[cause.code] : statusOfCode[refused.code]
  return reply
    .code(reply.hasHeader('allow') ? 405 : status)
    .type(answerType(request))
    .send(JSON.stringify({ errors: refused.errors }))
}

function refusalIn(error: unknown, request: FastifyRequest): Refusal | undefined {
  if (error instanceof Refusal) return error
  if (error instanceof AppError) {
    const isUpgrade = request.raw.socketUpgrade !== undefined
    if (error.code === 'bad-input' && !isUpgrade) return refusal('BAD_REQUEST', error.message)
    const isOperations = ofOperations.has(error.code) || (error.code === 'forbidden' && !isUpgrade)
    return isOperations ? refusalFromCore(error) : undefined
  }
  const { code } = error as { code?: unknown }
  if (code === 'FST_ERR_CTP_INVALID_JSON_BODY') return refusal('BAD_REQUEST', 'Request body is not valid JSON')
  const isServers = typeof code === 'string' && code.startsWith('FST_')
  return isServers || request.raw.errored !== null ? undefined : refusalFromCore(fault(error))
}

const ofOperations = new Set<ErrorCode>(['unauthenticated', 'unavailable', 'fault'])
