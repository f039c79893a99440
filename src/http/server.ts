import type { ServerOptions as HttpOptions } from 'node:http'
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import type { Logger } from 'pino'
import type { Policy } from '../core/access.ts'
import type { Randomness } from '../core/ports.ts'
import { nodeHttp } from '../lib/node-http.ts'
import { beginOperation, enterConnection } from '../lib/waits.ts'
import { acceptBodies } from './bodies.ts'
import type { TrustedProxies } from './client-address.ts'
import { Connections, serveInTurn } from './connections.ts'
import { answerError } from './errors.ts'
import { type Lifecycle, refuseUnderMaintenance } from './lifecycle.ts'
import { requestIdOf, traceparentIn } from './logging.ts'
import { answerParserError, refuseMalformed } from './malformed.ts'
import type { Metrics } from './metrics.ts'
import { allowOrigins, answerPreflights, refuseForeignPages } from './origins.ts'
import { countUnserved, limitAtOnce, limitRequests, type RateLimit, type Refuse } from './rate-limit.ts'
import type { RequestLog } from './request-log.ts'
import { malformedUrl, refuseUnrouted, routableUrl } from './routing.ts'
import { boundUnread, type Unread } from './unread.ts'
import { asksForSocket, routeUpgrades } from './upgrades.ts'

export interface ServerSettings {
  readonly bodyLimitBytes: number
  readonly corsOrigins: readonly string[]
  readonly accessPolicy: Policy
  readonly allowedHosts: readonly string[]
  readonly connectionsPerClient: number
}

export interface ServerParts {
  readonly logger: Logger
  readonly requestLog: RequestLog
  readonly randomness: Randomness
  readonly lifecycle: Lifecycle
  readonly proxies: TrustedProxies
  readonly rateLimit: RateLimit | undefined
  readonly unread: Unread
  readonly metrics: Pick<Metrics, 'cutConnection' | 'refusedConnection'>
}

/** An HTTP server with all common behaviour and no routes yet. The hooks run in the order in which they are added. */
export function createServer(
  { bodyLimitBytes, corsOrigins, accessPolicy, allowedHosts, connectionsPerClient }: ServerSettings,
  { logger, requestLog, randomness, lifecycle, proxies, rateLimit, unread, metrics }: ServerParts,
): FastifyInstance {
  const open = new Connections({
    most: connectionsPerClient,
    proxies,
    refused: rateLimit?.refused,
    onRefused: metrics.refusedConnection,
  })
  const refuse: Refuse = (client, seconds, except) => {
    if (open.refuse(client, seconds, except)) logger.warn({ seconds }, refusedLine)
  }
  const count = countUnserved(rateLimit, refuse)
  lifecycle.abandoned = reply => requestLog.answered(reply)
  const rawAnswers = { requestLog, proxies, randomness, count }
  const server: FastifyInstance = fastify({
    serverFactory: serve => nodeHttp.createServer(httpOptions, serveInTurn(serve, count)),
    loggerInstance: childless(logger),
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: bodyLimitBytes,
    genReqId: ({ headers }) => requestIdOf(headers, randomness),
    rewriteUrl: routableUrl,
    return503OnClosing: false,
    // An id of any length is simply absent; the limit on the header size bounds it already.
    routerOptions: { maxParamLength: httpOptions.maxHeaderSize },
    // Bodies and responses have no schemas of Fastify's, so their compilers need not be loaded.
    schemaController: { compilersFactory: { buildValidator: withoutSchemas, buildSerializer: withoutSchemas } },
    clientErrorHandler: (error, socket) => answerParserError(error, socket, rawAnswers),
    // Errors of the router (a URL that cannot be decoded) skip all hooks. Routed again, the request runs through them.
    frameworkErrors: (_error, { raw }, reply) => {
      raw.sentUrl = raw.url ?? ''
      raw.url = malformedUrl
      server.routing(raw, reply.raw)
    },
  })
  routeUpgrades(server)
  server.server.prependListener('connection', enterConnection) // before Node's own, whose parser calls all that follows
  server.server.on('connection', connection => {
    if (open.accept(connection)) lifecycle.trackConnection(connection)
  })
  server.setErrorHandler(answerError)

  server.decorateRequest('client', '').decorateRequest('route').decorateRequest('waits').decorateRequest('operation')
  server.decorateRequest('isCounted', false)
  server.addHook('onRequest', (request, reply, next) => {
    lifecycle.track(reply)
    request.route = request.routeOptions.config
    request.client = proxies.keyOf(request.raw)
    const traceparent = traceparentIn(request.headers.traceparent)
    request.waits = requestLog.begin(request.method, request.route.url, traceparent)
    reply.header('x-request-id', request.id)
    reply.header('x-content-type-options', 'nosniff')
    // Most responses depend on the caller or contain private data. A route whose response is the same for everybody
    // overrides this.
    reply.header('cache-control', 'no-store')
    beginOperation(request.waits)
    if (lifecycle.held === undefined) next()
    else lifecycle.held.then(() => next())
  })
  server.addHook('onSend', ({ waits }, { raw }, _payload, next) => {
    if (lifecycle.draining) raw.shouldKeepAlive = false
    if (waits !== undefined) waits.answeredAt = performance.now()
    next()
  })
  allowOrigins(server, corsOrigins)
  if (rateLimit !== undefined) limitRequests(server, rateLimit, refuse)
  refuseMalformed(server, rawAnswers)
  if (accessPolicy === 'open') refuseForeignPages(server, corsOrigins, allowedHosts)
  answerPreflights(server)
  refuseUnderMaintenance(server, lifecycle)
  refuseUnrouted(server)
  acceptBodies(server)
  if (rateLimit !== undefined) limitAtOnce(server, rateLimit)
  boundUnread(server, lifecycle.connections, unread, metrics.cutConnection)
  server.addHook('onResponse', (_request, reply, next) => {
    requestLog.answered(reply, reply.statusCode)
    next()
  })
  return server
}

const httpOptions = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 72_000,
  connectionsCheckingInterval: 2_000,
  maxHeaderSize: 16_384,
  // By default Node answers 400 without a body; `refuseMalformed` answers with an explanation.
  requireHostHeader: false,
  // By default Node drops all but the first `Host`, `Authorization` or `Content-Type`. If they are joined, we detect
  // duplicates.
  joinDuplicateHeaders: true,
  // Only WebSocket is supported. A request for another protocol is answered as if it had not asked for one.
  shouldUpgradeCallback: asksForSocket,
} satisfies HttpOptions

const refusedLine =
  'A client has sent more than twice what a limit allows. Its connections are refused for some seconds'

function withoutSchemas(): never {
  throw new Error('Schemas of Fastify are not used')
}

/**
 * A logger that is its own child. A child logger per request costs more than most requests log; `traceOf` adds the
 * request id to each line. If a `childLoggerFactory` did this, Fastify would check all methods of the logger each time.
 */
function childless(logger: Logger): FastifyBaseLogger {
  const own: FastifyBaseLogger = Object.create(logger)
  own.child = () => own
  return own
}
