import { waited, waiting } from '../lib/waits.ts'
import { unavailable } from './errors.ts'

export interface QueueBounds {
  readonly atOnce: number
  /** How many may wait. Further tasks are rejected with `unavailable`. Default: any number. */
  readonly mayWait?: number
}

/** Runs a few tasks at once; others wait, in order. */
export class Queue {
  readonly #bounds: QueueBounds
  #running = 0
  /** Each starts a task that waits. */
  readonly #waiting: (() => void)[] = []
  /** The outcomes of shared tasks that have not begun. */
  readonly #shared = new Map<string, Promise<unknown>>()

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds
  }

  get isIdle(): boolean {
    return this.#running === 0
  }

  get waiting(): number {
    return this.#waiting.length
  }

  async run<Outcome>(work: () => Promise<Outcome>): Promise<Outcome> {
    const { atOnce, mayWait = Number.POSITIVE_INFINITY } = this.#bounds
    if (this.#running < atOnce) this.#running++
    else if (this.#waiting.length >= mayWait) throw unavailable(new Error('Too many tasks wait'))
    else await new Promise<void>(start => this.#waiting.push(start))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }

  /** Runs a task for all who ask for it by this name before it begins. Not for a queue that refuses tasks. */
  share<Outcome>(name: string, work: () => Promise<Outcome>): Promise<Outcome> {
    const shared = this.#shared.get(name)
    if (shared !== undefined) return waiting('queue', shared as Promise<Outcome>)
    const asked = performance.now()
    let hasBegun = false
    const outcome = this.run(() => {
      hasBegun = true
      this.#shared.delete(name)
      waited('queue', asked)
      return work()
    })
    if (!hasBegun) this.#shared.set(name, outcome)
    return outcome
  }
}
