import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { listen } from '../support/ports.ts'

/** Both ends of one connection that passes through. */
export interface Ends {
  readonly client: Socket
  readonly server: Socket
}

/**
 * What happens to a chunk of data: it is forwarded, kept silently, or the connection is cut before, after or long before
 * it is forwarded.
 */
export type Decision = 'pass' | 'keep' | 'cut before' | 'cut after' | 'cut long before'

/** A proxy between clients and a server that lets a test decide about the data in both directions. */
export class Wire implements AsyncDisposable {
  readonly port: number
  fromClient: (data: Buffer, ends: Ends) => Decision = () => 'pass'
  fromServer: (data: Buffer, ends: Ends) => 'pass' | 'keep' = () => 'pass'
  readonly #listener: Server
  readonly #sockets = new Set<Socket>()

  static async to({ hostname: host, port }: Pick<URL, 'hostname' | 'port'>): Promise<Wire> {
    const listener = createServer({ allowHalfOpen: true })
    return new Wire(listener, await listen(listener), { host, port: Number(port) })
  }

  private constructor(listener: Server, port: number, target: { readonly host: string; readonly port: number }) {
    this.#listener = listener
    this.port = port
    listener.on('connection', client => {
      const ends = { client, server: connect({ ...target, allowHalfOpen: true }) }
      this.#join(ends.client, ends.server, data => this.#forward(data, ends))
      this.#join(ends.server, ends.client, data => {
        if (this.fromServer(data, ends) === 'pass') client.write(data)
      })
    })
  }

  /** The same address, with the port of the proxy. */
  through(address: string): string {
    const own = new URL(address)
    own.port = String(this.port)
    return own.href
  }

  #join(from: Socket, to: Socket, forward: (data: Buffer) => void): void {
    this.#sockets.add(from)
    from.on('error', () => {})
    from.on('data', forward)
    from.on('end', () => to.end())
    from.on('close', () => {
      this.#sockets.delete(from)
      to.end()
    })
  }

  #forward(data: Buffer, ends: Ends): void {
    const decision = this.fromClient(data, ends)
    if (decision === 'pass' || decision === 'cut after') ends.server.write(data)
    if (decision === 'pass' || decision === 'keep') return
    // The answer must not arrive. A proper close lets the server process everything that it received.
    ends.server.removeAllListeners('data')
    ends.client.removeAllListeners('close').destroy()
    if (decision !== 'cut long before') ends.server.end()
    else setTimeout(() => ends.server.end(data), 100)
  }

  /** Cuts all connections, also idle ones. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll()
    await once(this.#listener.close(), 'close')
  }
}
