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
}
