import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** Both ends of one connection that passes through. */
export interface Ends {
  readonly client: Socket
  readonly server: Socket
}

/** Called for each chunk of data. `pass` forwards it; `handled` means that the handler has dealt with it. */
export type Handler = (data: Buffer, ends: Ends) => 'pass' | 'handled'

/** A proxy between clients and a server that lets a test handle the data in both directions. */
export class Wire implements AsyncDisposable {
  readonly port: number
  fromClient: Handler = () => 'pass'
  fromServer: Handler = () => 'pass'
  readonly #listener: Server
  readonly #sockets = new Set<Socket>()

  static async to(target: { readonly host: string; readonly port: number }): Promise<Wire> {
    const listener = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
    await once(listener, 'listening')
    return new Wire(listener, target)
  }

  private constructor(listener: Server, target: { readonly host: string; readonly port: number }) {
    this.#listener = listener
    this.port = (listener.address() as AddressInfo).port
    listener.on('connection', client => {
      const ends = { client, server: connect({ ...target, allowHalfOpen: true }) }
      this.#join(ends.client, ends.server, data => this.fromClient(data, ends))
      this.#join(ends.server, ends.client, data => this.fromServer(data, ends))
    })
  }

  #join(from: Socket, to: Socket, handle: (data: Buffer) => 'pass' | 'handled'): void {
    this.#sockets.add(from)
    from.on('error', () => {})
    from.on('data', data => {
      if (handle(data) === 'pass') to.write(data)
    })
    from.on('end', () => to.end())
    from.on('close', () => {
      this.#sockets.delete(from)
      to.end()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#listener.close()
    await once(this.#listener, 'close')
  }
}
