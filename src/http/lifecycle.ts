import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import { AppError } from '../core/errors.ts'

/** The state of the running server: serving, under maintenance, or shutting down. */
export class Lifecycle {
  maintenance: boolean
  /** How long it keeps serving while clients switch to other instances. */
  drainMs: number
  /** While this is true, every response closes its connection: clients connect elsewhere. */
  draining = false
  requestsInFlight = 0
  /** When the latest connection or request arrived, in milliseconds of `performance.now()`. */
  #lastArrival = Number.NEGATIVE_INFINITY
  /** While this is set, requests wait for it before they are processed; see `shutDown`. */
  held: Promise<undefined> | undefined
  readonly connections = new Set<Socket>()
  /** Called with each request whose client disconnects before the answer is sent. */
  abandoned: (reply: FastifyReply) => void = () => {}
  /** Closes the connections that are WebSockets now. */
  closeSockets: () => void = () => {}
  /** Called when this thread no longer listens. Resolves when no other thread of the process does. */
  readonly stoppedListening: () => Promise<void>
  /** One listener for all responses, which it receives as `this`, so that a request needs no closure of its own. */
  readonly #forget: (this: ServerResponse) => void

  constructor({ maintenance, drainMs }: Pick<Lifecycle, 'maintenance' | 'drainMs'>, stoppedListening = async () => {}) {
    this.maintenance = maintenance
    this.drainMs = drainMs
    this.stoppedListening = stoppedListening
    const lifecycle = this
    this.#forget = function () {
      const reply = lifecycle.release(this)
      if (reply !== undefined && !this.writableFinished) lifecycle.abandoned(reply)
    }
  }

  /** Milliseconds since something has arrived. */
  get silence(): number {
    return performance.now() - this.#lastArrival
  }

  trackConnection(connection: Socket): void {
    this.#lastArrival = performance.now()
    this.connections.add(connection)
    connection.on('close', () => this.connections.delete(connection))
  }

  /**
   * Not in a `Set`: V8 often makes a new table for a busy one. A former table in the old space refers to the next one, so
   * all requests would come into the old space with it: 30 µs more for each, and twice the memory.
   */
  track(reply: FastifyReply): void {
    const response = reply.raw
    this.#lastArrival = performance.now()
    this.requestsInFlight++
    response.tracked = reply
    response.on('close', this.#forget)
    if (this.draining) response.shouldKeepAlive = false
  }

  /** Stops tracking a request, also one that gets no HTTP response. */
  release(response: ServerResponse): FastifyReply | undefined {
    const { tracked } = response
    if (tracked === undefined) return undefined
    response.tracked = undefined
    this.requestsInFlight--
    return tracked
  }
}

declare module 'node:http' {
  interface ServerResponse {
    /** Set while its request is in flight. */
    tracked?: FastifyReply | undefined
  }
}

/** Under maintenance, everything except the health routes is refused before its body is read. */
export function refuseUnderMaintenance(server: FastifyInstance, lifecycle: Lifecycle): void {
  server.addHook('onRequest', (request, _reply, next) => {
    if (!lifecycle.maintenance || request.route.probe) return next()
    next(new AppError('maintenance', 'Service under maintenance. Try again later.'))
  })
}

/** When connections with unfinished requests are closed, so that the process exits within ten seconds. */
export const cutAfterMs = 8_500
/** How long we wait for clients that are about to connect, or to send on a connection that they have not used. */
const graceMs = 1_000
/** If nothing arrives for this long, all clients that were about to connect have connected. */
const quietMs = 75

/**
 * Stops serving without losing a request. First readiness fails. For `drainMs` the server still answers, and each
 * response closes its connection, while clients and load balancers switch to other instances. Then the server stops
 * listening and waits for the requests in progress.
 */
export async function shutDown(server: FastifyInstance, lifecycle: Lifecycle, timeoutMs = cutAfterMs): Promise<void> {
  const { drainMs } = lifecycle
  const begun = performance.now()
  lifecycle.draining = true
  await until(() => lifecycle.connections.size === 0 && lifecycle.silence >= drainMs, begun + drainMs)
  if (drainMs > 0) await stopListening(server, lifecycle)
  lifecycle.closeSockets()
  const stopped = performance.now()
  let closed = false
  const closing = server.close().then(() => {
    closed = true
  })
  while (!closed && performance.now() < begun + timeoutMs) {
    // A connection becomes idle after its last response, and would stay open for a next request.
    server.server.closeIdleConnections()
    // Browsers connect in advance. Node treats a connection that has not sent anything as busy with its first request.
    if (performance.now() > stopped + graceMs)
      for (const connection of lifecycle.connections) if (connection.bytesRead === 0) connection.destroy()
    await Promise.race([closing, delay(10)])
  }
  if (!closed)
    server.log.warn(
      { connections: lifecycle.connections.size },
      'closing connections whose requests did not end in time',
    )
  // Node's `closeAllConnections` does not know those that asked for a WebSocket.
  for (const connection of lifecycle.connections) connection.destroy()
  await closing
}

/**
 * A connection that waits in the kernel's queue when we stop listening is reset, together with the request that its
 * client has already sent. So responses are held back until the queue is empty, because a client that waits for a
 * response does not open a new connection. The server stops listening right after the event loop has accepted the
 * waiting connections. With several threads, responses are held back until none of them listens.
 */
async function stopListening(server: FastifyInstance, lifecycle: Lifecycle): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  lifecycle.held = promise
  const begun = performance.now()
  const deadline = begun + graceMs
  // A thread without any connection so far may be about to get its first ones.
  const isQuiet = () => Math.min(lifecycle.silence, performance.now() - begun) > quietMs
  do {
    await until(isQuiet, deadline)
    await new Promise(setImmediate)
  } while (!isQuiet() && performance.now() < deadline) // it was silent because this thread had no CPU
  server.server.close()
  await lifecycle.stoppedListening()
  lifecycle.held = undefined
  resolve(undefined)
}

async function until(done: () => boolean, deadline: number): Promise<void> {
  while (!done() && performance.now() < deadline) await delay(10)
}

/**
 * Handles an uncaught error. The state of the process is unknown then, so it logs the error, lets the requests in
 * progress finish, and exits. It exits at once after a second such error, and after a timeout in any case.
 */
export function lastResort(logger: Logger, stop: () => Promise<unknown>, exit: (code: number) => void) {
  let stopping = false
  return (error: unknown) => {
    logger.fatal({ err: error }, stopping ? 'Another unhandled error: exiting' : 'Unhandled error: stopping')
    if (stopping) return exit(1)
    stopping = true
    const failed = () => exit(1)
    setTimeout(failed, 10_000)
    stop().then(failed, failed)
  }
}
