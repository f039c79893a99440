import type { FastifyInstance } from 'fastify'
import { unavailable } from '../core/errors.ts'
import type { Store } from '../core/store.ts'
import { oneAtATime } from '../lib/one-at-a-time.ts'
import { within } from '../lib/within.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { Metrics } from './metrics.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Set on routes that answer under maintenance too, and to requests that name the service by any host. */
    probe?: true
  }
}

/**
 * `/health/live`: the process is running. `/health/ready`: it can receive traffic. The metrics tell the latter too, so
 * that an alert needs nobody else who asks.
 */
export function serveHealth(
  server: FastifyInstance,
  lifecycle: Lifecycle,
  metrics: Metrics,
  store: Pick<Store, 'ping'>,
  timeoutMs: number,
): void {
  const ping = oneAtATime(() => store.ping())
  const ready = async (timeoutMs: number) => {
    if (lifecycle.draining) throw unavailable(new Error('Shutting down'))
    await within(ping(), timeoutMs, 'The database does not answer').catch(error => {
      throw unavailable(error)
    })
  }
  const config = { probe: true, unlimited: true } as const // the response is the same for everybody
  server.get('/health/live', { config }, (_request, reply) => {
    reply.header('cache-control', 'no-cache')
    return { status: 'live' }
  })
  server.get('/health/ready', { config }, async (_request, reply) => {
    reply.header('cache-control', 'no-cache')
    await ready(timeoutMs)
    return { status: 'ready' }
  })
  const isReady = () =>
    ready(Math.min(timeoutMs, scrapeMs)).then(
      () => 1,
      () => 0,
    )
  metrics.gauge(
    'duet_ready',
    '1 if the database answers reads and writes, else 0; 0 while shutting down',
    isReady,
    'min',
  )
}

/** Less than the metrics of a thread may take, which would be those of the scrape before if they came too late. */
const scrapeMs = 500
