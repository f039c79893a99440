import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { AppError } from '../core/errors.ts'

/** What the running server is up to: serving, under maintenance, or on its way out. */
export class Lifecycle {
  maintenance: boolean
  draining = false
  readonly #inFlight = new Set<ServerResponse>()

  constructor(maintenance: boolean) {
    this.maintenance = maintenance
  }

  get requestsInFlight(): number {
    return this.#inFlight.size
  }

  track(response: ServerResponse): void {
    this.#inFlight.add(response)
    response.once('close', () => this.#inFlight.delete(response))
    if (this.draining) response.shouldKeepAlive = false
  }

  /** From now on every answer, those under way included, asks its client to connect anew, elsewhere. */
  drain(): void {
    this.draining = true
    for (const response of this.#inFlight) response.shouldKeepAlive = false
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

/** How long clients and load balancers may still find the door open after they were told that it closes. */
const drainWindowMs = 1_000
/** When requests that do not end are cut off, so that the process is gone within ten seconds. */
const patienceMs = 8_500

/**
 * Stops serving without losing a request: tells readiness first, keeps answering (each answer closing its connection)
 * while clients turn away, then stops listening and waits for what is under way.
 */
export async function shutDown(server: FastifyInstance, lifecycle: Lifecycle): Promise<void> {
  lifecycle.drain()
  const ended = Date.now() + patienceMs
  await until(async () => (await openConnections(server)) === 0, Date.now() + drainWindowMs)
  let closed = false
  const closing = server.close().then(() => {
    closed = true
  })
  // A connection becomes idle when its last answer is sent, and would then stay open for a next request.
  await until(async () => {
    server.server.closeIdleConnections()
    return closed
  }, ended)
  server.server.closeAllConnections()
  await closing
}

async function until(done: () => Promise<boolean>, deadline: number): Promise<void> {
  while (!(await done()) && Date.now() < deadline) await new Promise(resolve => setTimeout(resolve, 20))
}

function openConnections(server: FastifyInstance): Promise<number> {
  return new Promise(resolve => server.server.getConnections((_error, count) => resolve(count ?? 0)))
}
