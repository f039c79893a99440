import { waiting } from './waits.ts'

/**
 * Lets each client have a few requests in progress; its further ones wait for them. Without this, a client that sends all
 * its requests of a minute at once would hold up every other client for seconds, if they are large.
 */
export class RequestsAtOnce {
  readonly #most: number
  /**
   * If none of a client's requests ends for so long, they may not work but wait, for a database that hangs for example.
   * Then one of those behind them begins.
   */
  readonly #stuckMs: number
  readonly #clients = new Map<string, OfClient>()

  constructor(most: number, stuckMs = 1_000) {
    this.#most = most
    this.#stuckMs = stuckMs
  }

  /** Returns a promise if the request must wait. `leave` must be called once for each request, when it has ended. */
  enter(client: string): Promise<void> | undefined {
    const own = this.#clients.get(client) ?? { running: 0, waiting: [], stuck: undefined }
    this.#clients.set(client, own)
    if (own.running < this.#most) {
      own.running++
      return undefined
    }
    const turn = new Promise<void>(resolve => own.waiting.push(resolve))
    if (own.waiting.length === 1) this.#watch(own)
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
    if (own.running < this.#most) begin(own)
    this.#watch(own)
    if (own.running === 0) this.#clients.delete(client)
  }

  #watch(own: OfClient): void {
    clearTimeout(own.stuck)
    const beginNext = () => {
      begin(own)
      this.#watch(own)
    }
    own.stuck = own.waiting.length === 0 ? undefined : setTimeout(beginNext, this.#stuckMs).unref()
  }
}

interface OfClient {
  running: number
  readonly waiting: (() => void)[]
  stuck: NodeJS.Timeout | undefined
}

/** Begins the one that has waited longest, if any waits. Others have a turn before it. */
function begin(own: OfClient): void {
  const start = own.waiting.shift()
  if (start === undefined) return
  own.running++
  setImmediate(start)
}
