import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { within } from '../support/wait.ts'

/** A connection of one client, and the data that it received. */
export class Wire implements Disposable {
  readonly #socket: Socket
  readonly #chunks: Buffer[] = []
  #isOver = false
  #news = Promise.withResolvers<void>()

  static async open(port: number, localAddress: string): Promise<Wire> {
    const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true, noDelay: true })
    const wire = new Wire(socket)
    await within(once(socket, 'connect'), `a connection to port ${port}`)
    return wire
  }

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', chunk => {
      this.#chunks.push(chunk)
      this.#wake()
    })
    socket.on('error', () => this.#end()) // the server has closed while we were still sending
    socket.on('end', () => this.#end())
    socket.on('close', () => this.#end())
  }

  /** The data since the last call. */
  take(): Buffer {
    return Buffer.concat(this.#chunks.splice(0))
  }

  /** Whether the server has ended the connection. */
  get isOver(): boolean {
    return this.#isOver && this.#chunks.length === 0
  }

  write(bytes: Buffer): void {
    this.#socket.write(bytes)
  }

  /** Closes our side: nothing more will be sent. */
  finish(): void {
    this.#socket.end()
  }

  reset(): void {
    this.#socket.resetAndDestroy()
  }

  /** Waits for data, for the end, or for this many milliseconds. Returns false after the timeout. */
  async more(quietMs?: number): Promise<boolean> {
    if (this.#chunks.length > 0 || this.#isOver) return true
    if (quietMs === undefined) {
      await this.#news.promise
      return true
    }
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(false), quietMs)
    this.#news.promise.then(() => resolve(true))
    const came = await promise
    clearTimeout(timer)
    return came
  }

  #end(): void {
    this.#isOver = true
    this.#wake()
  }

  #wake(): void {
    this.#news.resolve()
    this.#news = Promise.withResolvers()
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }
}

/** How long to wait for an answer to a request that may be incomplete. After that the client closes its side. */
export const quietMs = 100
