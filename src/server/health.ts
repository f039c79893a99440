import type { FastifyInstance } from 'fastify'
import { unavailable } from '../core/errors.ts'
import type { Store } from '../core/store.ts'
import type { Lifecycle } from './lifecycle.ts'

/** `/health/live`: the process runs. `/health/ready`: send it traffic. */
export function serveHealth(server: FastifyInstance, store: Pick<Store, 'ping'>, lifecycle: Lifecycle): void {
  const config = { servedUnderMaintenance: true, unlimited: true } as const
  server.get('/health/live', { config }, () => ({ status: 'live' }))
  server.get('/health/ready', { config }, async () => {
    if (lifecycle.draining) throw unavailable(new Error('Shutting down'))
    await answering(store)
    return { status: 'ready' }
  })
}

/** How long the store may take to say that it is there. */
const patienceMs = 1_000

async function answering(store: Pick<Store, 'ping'>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('The database does not answer')), patienceMs)
  try {
    await Promise.race([store.ping(), late])
  } catch (error) {
    throw unavailable(error)
  } finally {
    clearTimeout(timer)
  }
}
