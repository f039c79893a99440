import type { Tally } from '../core/ports.ts'

/** Data that waits in memory until a client reads it. */
export interface Waiting {
  readonly client: string
  /** How many bytes of it wait now. */
  readonly bytes: number
  /** Closes the connection on which it waits. */
  cut(): void
}

export interface UnsentBounds {
  readonly perClient: number
  readonly inAll: number
}

/**
 * Counts the unsent data, per client and in total: HTTP responses and WebSocket messages. Above a limit, it closes the
 * connections whose data has waited longest. Of a client, other threads may have data too, which counts; but only
 * connections of this thread are closed.
 */
export class Unsent {
  readonly #bounds: UnsentBounds
  /** The last known sizes in bytes, in the order in which the data began to wait. */
  readonly #seen = new Map<Waiting, number>()
  readonly #perClient = new Map<string, number>()
  readonly #shared: Tally | undefined
  #inAll = 0

  /** `shared` counts the bytes of each client in all threads. */
  constructor(bounds: UnsentBounds, shared?: Tally) {
    this.#bounds = bounds
    this.#shared = shared
  }

  /** The total, with the last known sizes. */
  get bytes(): number {
    return this.#inAll
  }

  note(waiting: Waiting): void {
    this.#update(waiting, waiting.bytes)
    if (this.#isBeyond(waiting.client)) this.#makeRoom(waiting.client)
  }

  forget(waiting: Waiting): void {
    this.#update(waiting, 0)
  }

  #isBeyond(client: string): boolean {
    return this.#inAll > this.#bounds.inAll || this.#isTooMuch(client)
  }

  #makeRoom(client: string): void {
    // Some of the data may have been sent since the last update.
    for (const waiting of [...this.#seen.keys()]) this.#update(waiting, waiting.bytes)
    while (this.#isTooMuch(client) && this.#ofClient(client) > 0) this.#cutOldest(client)
    // The client with most unread data is cut, not the client that began first.
    while (this.#inAll > this.#bounds.inAll) this.#cutOldest(this.#largest())
  }

  #cutOldest(client: string): void {
    for (const oldest of this.#seen.keys()) {
      if (oldest.client !== client) continue
      this.forget(oldest)
      oldest.cut()
      return
    }
  }

  #largest(): string {
    let largest = ''
    for (const [client, bytes] of this.#perClient) if (bytes > this.#ofClient(largest)) largest = client
    return largest
  }

  #update(waiting: Waiting, bytes: number): void {
    const more = bytes - (this.#seen.get(waiting) ?? 0)
    if (bytes > 0) this.#seen.set(waiting, bytes)
    else this.#seen.delete(waiting)
    if (more === 0) return
    const ofClient = this.#ofClient(waiting.client) + more
    if (ofClient > 0) this.#perClient.set(waiting.client, ofClient)
    else this.#perClient.delete(waiting.client)
    this.#inAll += more
    this.#shared?.add(waiting.client, more)
  }

  #isTooMuch(client: string): boolean {
    return (this.#shared?.count(client) ?? this.#ofClient(client)) > this.#bounds.perClient
  }

  #ofClient(client: string): number {
    return this.#perClient.get(client) ?? 0
  }
}
