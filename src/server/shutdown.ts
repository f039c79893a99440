import type { FastifyInstance } from 'fastify'
import type { Lifecycle } from './lifecycle.ts'

/** When requests that do not end are cut off, so that the process is gone within ten seconds. */
export const cutAfterMs = 8_500
/** How long clients that are about to connect, or to send on a connection they just made, are waited for. */
const graceMs = 600
/** Nobody came for this long: whoever was about to connect is in. */
const quietMs = 75

/**
 * Stops serving without losing a request: tells readiness first, keeps answering (each answer closing its connection)
 * for `drainMs` while clients and load balancers turn away, then stops listening and waits for what is under way.
 */
export async function shutDown(
  server: FastifyInstance,
  lifecycle: Lifecycle,
  drainMs: number,
  patienceMs = cutAfterMs,
): Promise<void> {
  const begun = performance.now()
  const silence = () => performance.now() - lifecycle.lastArrival
  lifecycle.drain()
  await until(() => lifecycle.connections.size === 0 && silence() >= drainMs, begun + drainMs)
  if (drainMs > 0) await stopListening(server, lifecycle, silence)
  lifecycle.farewell()
  const stopped = performance.now()
  let closed = false
  const closing = server.close().then(() => {
    closed = true
  })
  while (!closed && performance.now() < begun + patienceMs) {
    // A connection becomes idle when its last answer is sent, and would then stay open for a next request.
    server.server.closeIdleConnections()
    if (performance.now() > stopped + graceMs) closeUnused(lifecycle)
    await Promise.race([closing, moment()])
  }
  if (!closed)
    server.log.warn({ connections: lifecycle.connections.size }, 'cutting connections that did not end in time')
  server.server.closeAllConnections()
  await closing
}

/**
 * A connection that waits in the kernel's queue when we stop listening is reset, together with the request that its
 * client has already sent. So answers are held back until the queue is empty: whoever waits for an answer does not
 * connect anew. The door closes right after the event loop has let in who was there.
 */
async function stopListening(server: FastifyInstance, lifecycle: Lifecycle, silence: () => number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  lifecycle.held = promise
  await until(() => silence() > quietMs, performance.now() + graceMs)
  await new Promise(setImmediate)
  server.server.close()
  lifecycle.held = undefined
  resolve(undefined)
}

// Browsers connect in advance. Node counts a connection that has not sent anything as busy with its first request.
function closeUnused({ connections }: Lifecycle): void {
  for (const connection of connections) if (connection.bytesRead === 0) connection.destroy()
}

async function until(done: () => boolean, deadline: number): Promise<void> {
  while (!done() && performance.now() < deadline) await moment()
}

function moment(): Promise<unknown> {
  return new Promise(resolve => setTimeout(resolve, 10))
}
