/** A connection to which something may wait to be sent. */
export interface Connection {
  /** Bytes that wait now. */
  readonly unsent: number
  cut(): void
}

/**
 * What waits to be sent to one client over all its connections. Beyond its bound, connections that have let something wait
 * for longest are cut: a single one has a bound of its own, but a client may have many.
 */
export class Unsent {
  readonly #most: number
  /** As last seen, in the order in which they began to wait. */
  readonly #waiting = new Map<Connection, number>()
  #total = 0

  constructor(most: number) {
    this.#most = most
  }

  note(connection: Connection): void {
    this.#take(connection)
    if (this.#total <= this.#most) return
    // Some of it may have been sent since it was seen.
    for (const other of [...this.#waiting.keys()]) this.#take(other)
    for (const oldest of this.#waiting.keys()) {
      if (this.#total <= this.#most) return
      this.forget(oldest)
      oldest.cut()
    }
  }

  forget(connection: Connection): void {
    this.#total -= this.#waiting.get(connection) ?? 0
    this.#waiting.delete(connection)
  }

  #take(connection: Connection): void {
    const { unsent } = connection
    this.#total += unsent - (this.#waiting.get(connection) ?? 0)
    if (unsent === 0) this.#waiting.delete(connection)
    else this.#waiting.set(connection, unsent)
  }
}
