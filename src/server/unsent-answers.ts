import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Unsent } from './unsent.ts'

/** Counts large responses as unsent until their last byte is sent. */
export class UnsentAnswers {
  readonly #unsent: Unsent
  readonly #mayClose: number
  readonly #cut: (connection: Socket) => void
  /** Bytes of responses whose connections are being closed. Their memory is free only after the close. */
  #closing = 0

  constructor(unsent: Unsent, mayClose: number, cut: (connection: Socket) => void) {
    this.#unsent = unsent
    this.#mayClose = mayClose
    this.#cut = cut
  }

  /** Makes room for a response, counts it until it is sent, and calls `send` as soon as it may be sent. */
  add(response: ServerResponse, client: string, bytes: number, send: () => void): void {
    const { socket } = response
    // If the client is gone, nothing is sent, so nothing is counted.
    if (socket !== null && !socket.destroyed) {
      const answer = { client, bytes, cut: () => this.#end(socket, bytes) }
      response.once('close', () => this.#unsent.forget(answer))
      this.#unsent.note(answer)
    }
    this.#whenFree(send)
  }

  // Many responses can be ready in one turn of the event loop, before any connection that was cut is really closed.
  #whenFree(send: () => void): void {
    if (this.#closing <= this.#mayClose) send()
    else setImmediate(() => this.#whenFree(send))
  }

  #end(socket: Socket, bytes: number): void {
    this.#closing += bytes
    socket.once('close', () => {
      this.#closing -= bytes
    })
    this.#cut(socket)
  }
}
