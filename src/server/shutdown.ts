import type { FastifyInstance } from 'fastify'
import type { Lifecycle } from './lifecycle.ts'

/** When connections with unfinished requests are closed, so that the process exits within ten seconds. */
export const cutAfterMs = 8_500
/** How long we wait for clients that are about to connect, or to send on a connection that they have not used. */
const graceMs = 1_000
/** If nothing arrives for this long, all clients that were about to connect have connected. */
const quietMs = 75

/**
 * Stops serving without losing a request. First readiness fails. For `drainMs` the server still answers, and each
 * response closes its connection, while clients and load balancers switch to other instances. Then the server stops
 * listening and waits for the requests in progress.
 */
export async function shutDown(
  server: FastifyInstance,
  lifecycle: Lifecycle,
  drainMs: number,
  timeoutMs = cutAfterMs,
): Promise<void> {
  const begun = performance.now()
  lifecycle.draining = true
  await until(() => lifecycle.connections.size === 0 && lifecycle.silence >= drainMs, begun + drainMs)
  if (drainMs > 0) await stopListening(server, lifecycle)
  lifecycle.closeSockets()
  const stopped = performance.now()
  let closed = false
  const closing = server.close().then(() => {
    closed = true
  })
  while (!closed && performance.now() < begun + timeoutMs) {
    // A connection becomes idle after its last response, and would stay open for a next request.
    server.server.closeIdleConnections()
    if (performance.now() > stopped + graceMs) closeUnused(lifecycle)
    await Promise.race([closing, shortDelay()])
  }
  if (!closed)
    server.log.warn(
      { connections: lifecycle.connections.size },
      'closing connections whose requests did not end in time',
    )
  server.server.closeAllConnections()
  await closing
}

/**
 * A connection that waits in the kernel's queue when we stop listening is reset, together with the request that its
 * client has already sent. So responses are held back until the queue is empty, because a client that waits for a
 * response does not open a new connection. The server stops listening right after the event loop has accepted the
 * waiting connections. With several threads, responses are held back until none of them listens.
 */
async function stopListening(server: FastifyInstance, lifecycle: Lifecycle): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  lifecycle.held = promise
  await until(() => lifecycle.silence > quietMs, performance.now() + graceMs)
  await new Promise(setImmediate)
  server.server.close()
  await lifecycle.stoppedListening()
  lifecycle.held = undefined
  resolve(undefined)
}

// Browsers connect in advance. Node treats a connection that has not sent anything as busy with its first request.
function closeUnused({ connections }: Lifecycle): void {
  for (const connection of connections) if (connection.bytesRead === 0) connection.destroy()
}

async function until(done: () => boolean, deadline: number): Promise<void> {
  while (!done() && performance.now() < deadline) await shortDelay()
}

function shortDelay(): Promise<unknown> {
  return new Promise(resolve => setTimeout(resolve, 10))
}
