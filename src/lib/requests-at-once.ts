import { waiting } from './waits.ts'

/**
 * Lets each client have a few requests in progress; its further ones wait for them. Without this, a client that sends all
 * its requests of a minute at once would hold up every other client for seconds, if they are large.
 */
export class RequestsAtOnce {
  readonly #most: number
  /**
   * What the largest request takes at most, with its database. Who has waited so long for each one before it waits no
   * longer: they wait for something else then, for a database that hangs for example.
   */
  readonly #longestMs: number
  readonly #clients = new Map<string, { running: number; readonly waiting: Set<() => void> }>()

  constructor(most: number, longestMs = 50) {
    this.#most = most
    this.#longestMs = longestMs
  }

  /** Returns a promise if the request must wait. `leave` must be called once for each request, when it has ended. */
  enter(client: string): Promise<void> | undefined {
    const own = this.#clients.get(client) ?? { running: 0, waiting: new Set() }
    this.#clients.set(client, own)
    if (own.running < this.#most) {
      own.running++
      return undefined
    }
    const turn = new Promise<void>(resolve => {
      const begin = () => {
        clearTimeout(timer)
        own.waiting.delete(begin)
        own.running++
        resolve()
      }
      own.waiting.add(begin)
      const timer = setTimeout(begin, own.waiting.size * this.#longestMs)
    })
    return waiting('queue', turn)
  }

  async during<Outcome>(client: string, work: () => Promise<Outcome>): Promise<Outcome> {
    await this.enter(client)
    try {
      return await work()
    } finally {
      this.leave(client)
    }
  }

  leave(client: string): void {
    const own = this.#clients.get(client)
    if (own === undefined) return
    own.running--
    const [next] = own.waiting
    if (next !== undefined && own.running < this.#most) next()
    if (own.running === 0) this.#clients.delete(client)
  }
}
