import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface UnsentBounds {
  /** Answers of at least this size count; smaller ones are bounded by the number of connections. */
  readonly countedFrom: number
  readonly perClient: number
  readonly inAll: number
}

/**
 * Large answers that are not sent completely. They are in memory until they are, so they are bounded for each client and
 * in all: where an answer would exceed a bound, the connections of the oldest answers are cut.
 */
export class UnsentAnswers {
  readonly #bounds: UnsentBounds
  readonly #cut: (connection: Socket) => void
  /** The oldest first. */
  readonly #answers = new Set<Answer>()
  readonly #perClient = new Map<string, number>()
  #inAll = 0
  /** Of answers that were cut in this turn of the event loop: their memory is free when their connections are closed. */
  #closing = 0

  constructor(bounds: UnsentBounds, cut: (connection: Socket) => void) {
    this.#bounds = bounds
    this.#cut = cut
  }

  /** Makes room for an answer, counts it until it is sent, and calls `send` when it may be. */
  add(response: ServerResponse, client: string, size: number, send: () => void): void {
    const { socket } = response
    // Where nobody is left to read it, it goes nowhere.
    if (socket !== null && !socket.destroyed) this.#admit({ client, size, socket }, response)
    this.#whenFree(send)
  }

  #admit(answer: Answer, response: ServerResponse): void {
    const { client, size } = answer
    const { perClient, inAll } = this.#bounds
    for (const oldest of this.#answers) {
      const fromClient = (this.#perClient.get(client) ?? 0) + size > perClient
      if (!fromClient && this.#inAll + size <= inAll) break
      if (!fromClient || oldest.client === client) this.#end(oldest)
    }
    this.#answers.add(answer)
    this.#count(answer, 1)
    response.once('close', () => this.#forget(answer))
  }

  // Many answers can be ready in one turn of the event loop, in which no connection that was cut is closed yet.
  #whenFree(send: () => void): void {
    if (this.#closing <= this.#bounds.perClient) send()
    else setImmediate(() => this.#whenFree(send))
  }

  #end(answer: Answer): void {
    this.#forget(answer)
    this.#closing += answer.size
    answer.socket.once('close', () => {
      this.#closing -= answer.size
    })
    this.#cut(answer.socket)
  }

  #forget(answer: Answer): void {
    if (this.#answers.delete(answer)) this.#count(answer, -1)
  }

  #count({ client, size }: Answer, times: 1 | -1): void {
    const total = (this.#perClient.get(client) ?? 0) + times * size
    if (total === 0) this.#perClient.delete(client)
    else this.#perClient.set(client, total)
    this.#inAll += times * size
  }
}

interface Answer {
  readonly client: string
  readonly size: number
  readonly socket: Socket
}
