import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { AppError } from '../core/errors.ts'
import { logAbandoned } from './logging.ts'

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
  /** Closes the connections that are WebSockets now. */
  closeSockets: () => void = () => {}
  /** Called when this thread no longer listens. Resolves when no other thread of the process does. */
  readonly stoppedListening: () => Promise<void>
  /** One listener for all responses, which it receives as `this`, so that a request needs no closure of its own. */
  readonly #forget: (this: ServerResponse) => void

  constructor(
    { maintenance, drainMs = 0 }: { readonly maintenance: boolean; readonly drainMs?: number },
    stoppedListening = async () => {},
  ) {
    this.maintenance = maintenance
    this.drainMs = drainMs
    this.stoppedListening = stoppedListening
    const release = (response: ServerResponse) => this.release(response)
    this.#forget = function () {
      const reply = release(this)
      if (reply !== undefined && !this.writableFinished) logAbandoned(reply)
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

  track(reply: FastifyReply): void {
    const response = reply.raw
    this.#lastArrival = performance.now()
    this.requestsInFlight++
    response.tracked = reply
    response.on('close', this.#forget)
    if (this.draining) response.shouldKeepAlive = false
  }

  /** Stops tracking a request that gets no HTTP response. */
  release(response: ServerResponse): FastifyReply | undefined {
    const { tracked } = response
    if (tracked === undefined) return undefined
    response.tracked = undefined
    this.requestsInFlight--
    return tracked
  }
}

/** Under maintenance, everything except the health routes is refused before its body is read. */
export function refuseUnderMaintenance(server: FastifyInstance, lifecycle: Lifecycle): void {
  server.addHook('onRequest', (request, _reply, next) => {
    if (!lifecycle.maintenance || request.routeOptions.config.servedUnderMaintenance) return next()
    next(new AppError('maintenance', 'Service under maintenance. Try again later.'))
  })
}

declare module 'node:http' {
  interface ServerResponse {
    /** Set while its request is in flight. */
    tracked?: FastifyReply | undefined
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    servedUnderMaintenance?: true
  }
}
