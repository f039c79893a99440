import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Unsent } from './unsent.ts'

/** Counts large answers as unsent until they are sent to their last byte. */
export class UnsentAnswers {
  readonly #unsent: Unsent
  readonly #mayClose: number
  readonly #cut: (connection: Socket) => void
  /** Bytes of answers that were cut in this turn of the event loop: their memory is free when their connections are closed. */
  #closing = 0

  constructor(unsent: Unsent, mayClose: number, cut: (connection: Socket) => void) {
    this.#unsent = unsent
    this.#mayClose = mayClose
    this.#cut = cut
  }

  /** Makes room for an answer, counts it until it is sent, and calls `send` when it may be. */
  add(response: ServerResponse, client: string, bytes: number, send: () => void): void {
    const { socket } = response
    // Where nobody is left to read it, it goes nowhere.
    if (socket !== null && !socket.destroyed) {
      const answer = { client, bytes, cut: () => this.#end(socket, bytes) }
      response.once('close', () => this.#unsent.forget(answer))
      this.#unsent.note(answer)
    }
    this.#whenFree(send)
  }

  // Many answers can be ready in one turn of the event loop, in which no connection that was cut is closed yet.
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
