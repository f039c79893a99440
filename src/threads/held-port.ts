import { once } from 'node:events'
import { createServer, type ListenOptions } from 'node:net'

/**
 * Holds a port for this process. Throws if another program has it. Threads share their port, and so would two servers
 * that both have several threads: each would get a part of the connections, and nobody would notice.
 */
export async function holdPort({ host, port }: { readonly host: string; readonly port: number }) {
  await using held = new AsyncDisposableStack()
  if (port !== 0) {
    // A name that only Linux has, without a file. It belongs to this process until it ends, however that happens.
    held.use(await listen({ path: `\0duet ${host}:${port}` }))
    const free = await listen({ host, port, exclusive: true })
    await free[Symbol.asyncDispose]()
  }
  return held.move()
}

async function listen(options: ListenOptions) {
  const server = createServer(connection => connection.destroy()).listen(options)
  await once(server, 'listening')
  server.unref()
  return server
}
