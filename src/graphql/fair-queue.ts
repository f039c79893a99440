/**
 * Does work for many owners: only so much at once, and only so much of one owner. Owners take turns, so that one with a lot
 * of work delays another one by a single piece of it.
 */
export class FairQueue {
  readonly #atOnce: number
  readonly #perOwner: number
  /** The owner whose turn is next comes first. */
  readonly #lanes = new Map<string, Lane>()
  #running = 0

  constructor({ atOnce, perOwner }: { readonly atOnce: number; readonly perOwner: number }) {
    this.#atOnce = atOnce
    this.#perOwner = perOwner
  }

  run<Outcome>(owner: string, work: () => Promise<Outcome>): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    const lane = this.#lanes.get(owner) ?? { waiting: [], running: 0 }
    lane.waiting.push(() => work().then(resolve, reject))
    this.#lanes.set(owner, lane)
    this.#fill()
    return promise
  }

  #fill(): void {
    while (this.#running < this.#atOnce) {
      const turn = this.#next()
      if (turn === undefined) return
      this.#start(...turn)
    }
  }

  #next(): [owner: string, lane: Lane] | undefined {
    for (const [owner, lane] of this.#lanes) {
      if (lane.waiting.length > 0 && lane.running < this.#perOwner) return [owner, lane]
    }
    return undefined
  }

  #start(owner: string, lane: Lane): void {
    const work = lane.waiting.shift()
    if (work === undefined) return
    this.#lanes.delete(owner)
    this.#lanes.set(owner, lane) // behind all others
    lane.running++
    this.#running++
    work().finally(() => {
      lane.running--
      this.#running--
      if (lane.running === 0 && lane.waiting.length === 0) this.#lanes.delete(owner)
      this.#fill()
    })
  }
}

interface Lane {
  readonly waiting: (() => Promise<void>)[]
  running: number
}
