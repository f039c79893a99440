import { unavailable } from './errors.ts'

export interface GateBounds {
  readonly atOnce: number
  readonly mayWait: number
}

/**
 * Lets so much work run at once and so much wait, whoever it is for; what comes beyond is refused with `unavailable`.
 * Clients take turns, and where no more may wait, the one that waits for most gives way. So nobody is refused, or kept
 * waiting for long, because of what somebody else asks for.
 */
export class FairGate {
  readonly #bounds: GateBounds
  /** Who waits, the client whose turn is next first. No list is empty. */
  readonly #waiting = new Map<string, Waiter[]>()
  #waiters = 0
  #running = 0

  constructor(bounds: GateBounds) {
    this.#bounds = bounds
  }

  async pass<Outcome>(client: string, work: () => Promise<Outcome>): Promise<Outcome> {
    if (this.#running < this.#bounds.atOnce) this.#running++
    else await this.#turn(client)
    try {
      return await work()
    } finally {
      this.#next()
    }
  }

  #turn(client: string): Promise<void> {
    const own = this.#waiting.get(client) ?? []
    if (this.#waiters >= this.#bounds.mayWait) this.#makeRoom(own.length)
    const waiter = Promise.withResolvers<void>()
    own.push(waiter)
    this.#waiters++
    this.#waiting.set(client, own)
    return waiter.promise
  }

  // Who came last waits in vain: those before it have waited longer.
  #makeRoom(own: number): void {
    const longest = [...this.#waiting.values()].reduce((one, other) => (other.length > one.length ? other : one), [])
    if (longest.length <= own + 1) throw tooMany()
    longest.pop()?.reject(tooMany())
    this.#waiters--
  }

  // Whoever leaves hands its place on, so the number of those who run stays the same.
  #next(): void {
    for (const [client, waiters] of this.#waiting) {
      this.#waiting.delete(client)
      const next = waiters.shift()
      if (waiters.length > 0) this.#waiting.set(client, waiters)
      this.#waiters--
      next?.resolve()
      return
    }
    this.#running--
  }
}

type Waiter = PromiseWithResolvers<void>

function tooMany(): Error {
  return unavailable(new Error('Too many wait'))
}
