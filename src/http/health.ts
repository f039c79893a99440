import type { FastifyInstance } from 'fastify'
import { unavailable } from '../core/errors.ts'
import type { Store } from '../core/store.ts'
import { within } from '../lib/within.ts'
import type { Lifecycle } from './lifecycle.ts'

/** `/health/live`: the process is running. `/health/ready`: it can receive traffic. */
export function serveHealth(
  server: FastifyInstance,
  store: Pick<Store, 'ping'>,
  lifecycle: Lifecycle,
  timeoutMs: number,
): void {
  // A probe may name the service by any address. The response is the same for everybody.
  const config = { servedUnderMaintenance: true, unlimited: true, anyHost: true } as const
  server.get('/health/live', { config }, (_request, reply) => {
    reply.header('cache-control', 'no-cache')
    return { status: 'live' }
  })
  server.get('/health/ready', { config }, async (_request, reply) => {
    reply.header('cache-control', 'no-cache')
    if (lifecycle.draining) throw unavailable(new Error('Shutting down'))
    await within(store.ping(), timeoutMs, 'The database does not answer').catch(error => {
      throw unavailable(error)
    })
    return { status: 'ready' }
  })
}
