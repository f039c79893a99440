import { unavailable } from './errors.ts'

export interface FairQueueBounds {
  readonly atOnce: number
  /** How much of one client's work runs at once. */
  readonly perClient?: number
  readonly mayWait?: number
}

/**
 * Runs work for many clients: only so much at once, and only so much may wait. Clients take turns. Where no more may wait,
 * the last work of the client that waits for most is refused with `unavailable`. So nobody is refused, or kept waiting for
 * long, because of what another client asks for.
 */
export class FairQueue {
  readonly #atOnce: number
  readonly #perClient: number
  readonly #mayWait: number
  /** The client whose turn is next comes first. */
  readonly #lanes = new Map<string, Lane>()
  #running = 0
  #waiting = 0

  constructor({ atOnce, perClient = atOnce, mayWait = Number.POSITIVE_INFINITY }: FairQueueBounds) {
    this.#atOnce = atOnce
    this.#perClient = perClient
    this.#mayWait = mayWait
  }

  run<Outcome>(client: string, work: () => Promise<Outcome>): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    const lane = this.#lanes.get(client) ?? { waiting: [], running: 0 }
    if (lane.waiting.length === 0) this.#putLast(client, lane)
    lane.waiting.push({ start: () => work().then(resolve, reject), refuse: reject })
    this.#waiting++
    this.#startAll()
    if (this.#waiting > this.#mayWait) this.#refuseOne(lane)
    return promise
  }

  #startAll(): void {
    while (this.#running < this.#atOnce) {
      const turn = this.#next()
      if (turn === undefined) return
      this.#start(...turn)
    }
  }

  #next(): [client: string, lane: Lane, work: Work] | undefined {
    for (const [client, lane] of this.#lanes) {
      const [work] = lane.waiting
      if (work !== undefined && lane.running < this.#perClient) return [client, lane, work]
    }
    return undefined
  }

  #start(client: string, lane: Lane, { start }: Work): void {
    lane.waiting.shift()
    this.#waiting--
    this.#putLast(client, lane)
    lane.running++
    this.#running++
    start().finally(() => {
      lane.running--
      this.#running--
      if (lane.running === 0 && lane.waiting.length === 0) this.#lanes.delete(client)
      this.#startAll()
    })
  }

  #putLast(client: string, lane: Lane): void {
    this.#lanes.delete(client)
    this.#lanes.set(client, lane)
  }

  // Work that came last has waited for the shortest time. Of lanes of one length, the newcomer's gives way.
  #refuseOne(newcomer: Lane): void {
    const longer = (one: Lane, other: Lane) => (other.waiting.length > one.waiting.length ? other : one)
    const longest = [...this.#lanes.values()].reduce(longer, newcomer)
    longest.waiting.pop()?.refuse(unavailable(new Error('Too many wait')))
    this.#waiting--
  }
}

interface Lane {
  readonly waiting: Work[]
  running: number
}

interface Work {
  start(): Promise<void>
  refuse(reason: Error): void
}
