import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** Pass the data on; cut the connection before, after or long before passing it on; or keep the data silently. */
export type Decision = 'pass' | 'cut before' | 'cut after' | 'cut long before' | 'stall'

/** A proxy between a client and a server that cuts, stalls or passes the data of the client. */
export class TcpProxy implements AsyncDisposable {
  readonly port: number
  /** Decides on each piece of data from a client. */
  decide: (data: Buffer) => Decision = () => 'pass'
  readonly #server: Server
  readonly #sockets: Set<Socket>

  static async to(target: { host: string; port: number }): Promise<TcpProxy> {
    const sockets = new Set<Socket>()
    const server = createServer(client => {
      const upstream = connect(target)
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        sockets.add(from)
        from.on('error', () => {})
        from.on('close', () => {
          sockets.delete(from)
          to.destroy()
        })
      }
      upstream.on('data', data => client.write(data))
      client.on('data', data => {
        const decision = proxy.decide(data)
        if (decision === 'stall') return
        if (decision === 'pass' || decision === 'cut after') upstream.write(data)
        if (decision === 'pass') return
        // The answer must not get through; an orderly close lets the server process all it received.
        upstream.removeAllListeners('data')
        client.removeAllListeners('close')
        client.destroy()
        if (decision !== 'cut long before') upstream.end()
        else setTimeout(() => upstream.end(data), 100)
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const proxy = new TcpProxy(server, sockets)
    return proxy
  }

  private constructor(server: Server, sockets: Set<Socket>) {
    this.#server = server
    this.#sockets = sockets
    this.port = (server.address() as AddressInfo).port
  }

  /** Cuts all connections, also those on which nothing is sent. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
