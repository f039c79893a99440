import type { FastifyInstance } from 'fastify'
import { unavailable } from '../core/errors.ts'
import type { Store } from '../core/store.ts'
import { within } from '../lib/within.ts'
import type { Lifecycle } from './lifecycle.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Set on routes that answer under maintenance too, and to requests that name the service by any host. */
    probe?: true
  }
}

/** `/health/live`: the process is running. `/health/ready`: it can receive traffic. */
export function serveHealth(
  server: FastifyInstance,
  store: Pick<Store, 'ping'>,
  lifecycle: Lifecycle,
  timeoutMs: number,
): void {
  const config = { probe: true, unlimited: true } as const // the response is the same for everybody
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
