import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Throws if another program listens on the port. Threads share their port, and so would two servers that both have
 * several threads: each would get a part of the connections, and nobody would notice.
 */
export async function assertFree({ host, port }: { readonly host: string; readonly port: number }): Promise<void> {
  if (port === 0) return
  const server = createServer()
  server.listen({ host, port, exclusive: true })
  await once(server, 'listening')
  server.close()
  await once(server, 'close')
}
