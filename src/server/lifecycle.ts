import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { AppError } from '../core/errors.ts'
import { logAbandoned } from './logging.ts'

/** What the running server is up to: serving, under maintenance, or on its way out. */
export class Lifecycle {
  maintenance: boolean
  draining = false
  /** When the latest connection or request came, in milliseconds of `performance.now()`. */
  lastArrival = Number.NEGATIVE_INFINITY
  /** While set, requests wait for it before anything is done for them; see `shutDown`. */
  held: Promise<undefined> | undefined
  readonly connections = new Set<Socket>()
  /** Says good-bye on connections that are not HTTP's any more. */
  farewell: () => void = () => {}
  readonly #inFlight = new Map<ServerResponse, FastifyReply>()
  /** One listener for all responses, which it receives as `this`: a request costs no closure. */
  readonly #forget: (this: ServerResponse) => void

  constructor({ maintenance }: { readonly maintenance: boolean }) {
    this.maintenance = maintenance
    const inFlight = this.#inFlight
    this.#forget = function () {
      const reply = inFlight.get(this)
      inFlight.delete(this)
      if (reply !== undefined && !this.writableFinished) logAbandoned(reply)
    }
  }

  get requestsInFlight(): number {
    return this.#inFlight.size
  }

  admit(connection: Socket): void {
    this.lastArrival = performance.now()
    this.connections.add(connection)
    connection.on('close', () => this.connections.delete(connection))
  }

  track(reply: FastifyReply): void {
    const response = reply.raw
    this.lastArrival = performance.now()
    this.#inFlight.set(response, reply)
    response.on('close', this.#forget)
    if (this.draining) response.shouldKeepAlive = false
  }

  /** There will be no answer to this one. */
  release(response: ServerResponse): void {
    this.#inFlight.delete(response)
  }

  /** From now on every answer, those under way included, asks its client to connect anew, elsewhere. */
  drain(): void {
    this.draining = true
    for (const response of this.#inFlight.keys()) response.shouldKeepAlive = false
  }
}

/** Health stays reachable under maintenance; everything else is refused before its body is read. */
export function refuseUnderMaintenance(server: FastifyInstance, lifecycle: Lifecycle): void {
  server.addHook('onRequest', (request, _reply, next) => {
    if (!lifecycle.maintenance || request.routeOptions.config.servedUnderMaintenance) return next()
    next(new AppError('maintenance', 'Service under maintenance. Try again later.'))
  })
}

declare module 'fastify' {
  interface FastifyContextConfig {
    servedUnderMaintenance?: true
  }
}
