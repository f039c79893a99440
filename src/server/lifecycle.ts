import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { AppError } from '../core/errors.ts'
import { Slots } from '../core/slots.ts'
import { logAbandoned } from './logging.ts'

/** The state of the running server: serving, under maintenance, or shutting down. */
export class Lifecycle {
  maintenance: boolean
  /** How long it keeps serving while clients switch to other instances. */
  drainMs: number
  draining = false
  /** When the latest connection or request arrived, in milliseconds of `performance.now()`. */
  #lastArrival = Number.NEGATIVE_INFINITY
  /** While this is set, requests wait for it before they are processed; see `shutDown`. */
  held: Promise<undefined> | undefined
  readonly connections = new Set<Socket>()
  /** Closes the connections that are WebSockets now. */
  closeSockets: () => void = () => {}
  /** Called when this thread no longer listens. Resolves when no other thread of the process does. */
  readonly stoppedListening: () => Promise<void>
  readonly #inFlight = new Slots<FastifyReply>()
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

  get requestsInFlight(): number {
    return this.#inFlight.size
  }

  /** Milliseconds since something has arrived. */
  get silence(): number {
    return performance.now() - this.#lastArrival
  }

  #noteArrival(): void {
    this.#lastArrival = performance.now()
  }

  trackConnection(connection: Socket): void {
    this.#noteArrival()
    connection.openedAt = this.#lastArrival
    this.connections.add(connection)
    connection.on('close', () => this.connections.delete(connection))
  }

  track(reply: FastifyReply): void {
    const response = reply.raw
    this.#noteArrival()
    response.slot = this.#inFlight.add(reply)
    response.on('close', this.#forget)
    if (this.draining) response.shouldKeepAlive = false
  }

  /** Stops tracking a request that gets no HTTP response. */
  release(response: ServerResponse): FastifyReply | undefined {
    const { slot } = response
    if (slot === undefined) return undefined
    response.slot = undefined
    return this.#inFlight.take(slot)
  }

  /** From now on every response, also to requests in progress, closes its connection: clients connect elsewhere. */
  drain(): void {
    this.draining = true
    for (const { raw } of this.#inFlight) raw.shouldKeepAlive = false
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
    /** Its place among the requests in flight. */
    slot?: number | undefined
  }
}

declare module 'node:net' {
  interface Socket {
    /** When it was accepted, in milliseconds of `performance.now()`. */
    openedAt?: number
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    servedUnderMaintenance?: true
  }
}
