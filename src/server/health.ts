import type { FastifyInstance } from 'fastify'
import { unavailable } from '../core/errors.ts'
import type { Store } from '../core/store.ts'
import type { Lifecycle } from './lifecycle.ts'

/** `/health/live`: the process runs. `/health/ready`: send it traffic. */
export function serveHealth(server: FastifyInstance, store: Store, lifecycle: Lifecycle): void {
  const config = { servedUnderMaintenance: true } as const
  server.get('/health/live', { config }, () => ({ status: 'live' }))
  server.get('/health/ready', { config }, async () => {
    if (lifecycle.draining) throw unavailable(new Error('Shutting down'))
    await withinOneSecond(store.ping())
    return { status: 'ready' }
  })
}

async function withinOneSecond(answer: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(unavailable(new Error('The database does not answer'))), 1000)
  })
  await Promise.race([answer, late]).finally(() => clearTimeout(timer))
}
