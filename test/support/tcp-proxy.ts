import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** Forwards the data; cuts the connection before, after or long before it forwards the data; or keeps the data silently. */
export type Decision = 'pass' | 'cut before' | 'cut after' | 'cut long before' | 'stall'

/** A proxy between clients and a server that forwards, cuts or stalls the data of clients. */
export class TcpProxy implements AsyncDisposable {
  readonly port: number
  /** Decides about each chunk of data from a client. */
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
        // The answer must not arrive. A proper close lets the server process everything that it received.
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

  /** Cuts all connections, also idle ones. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
