import { unavailable } from './errors.ts'

export interface QueueBounds {
  readonly atOnce: number
  /** How many may wait. Further tasks are rejected with `unavailable`. Default: any number. */
  readonly mayWait?: number
}

/** Runs a few tasks at once; others wait, in order. */
export class Queue {
  readonly #atOnce: number
  #free: number
  readonly #mayWait: number
  /** Each starts a task that waits. */
  readonly #waiting: (() => void)[] = []

  constructor({ atOnce, mayWait = Number.POSITIVE_INFINITY }: QueueBounds) {
    this.#atOnce = atOnce
    this.#free = atOnce
    this.#mayWait = mayWait
  }

  get isIdle(): boolean {
    return this.#free === this.#atOnce
  }

  async run<Outcome>(work: () => Promise<Outcome>): Promise<Outcome> {
    if (this.#free > 0) this.#free--
    else if (this.#waiting.length >= this.#mayWait) throw unavailable(new Error('Too many tasks wait'))
    else await new Promise<void>(start => this.#waiting.push(start))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}
