import { unavailable } from './errors.ts'

/** Lets so much work run at once and so much wait; what comes beyond, or waits too long, is refused with `unavailable`. */
export class Gate {
  readonly #atOnce: number
  readonly #mayWait: number
  readonly #waiting = new Set<() => void>()
  #running = 0

  constructor({ atOnce, mayWait }: { readonly atOnce: number; readonly mayWait: number }) {
    this.#atOnce = atOnce
    this.#mayWait = mayWait
  }

  async pass<Outcome>(work: () => Promise<Outcome>, patienceMs?: number): Promise<Outcome> {
    if (this.#running < this.#atOnce) this.#running++
    else await this.#turn(patienceMs)
    try {
      return await work()
    } finally {
      this.#next()
    }
  }

  // Whoever leaves hands its place to who has waited longest, so the number of those who run stays the same.
  #turn(patienceMs: number | undefined): Promise<void> {
    if (this.#waiting.size >= this.#mayWait) throw unavailable(new Error('Too many wait'))
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting.delete(enter)
        reject(unavailable(new Error('Waited too long')))
      }
      const timer = patienceMs === undefined ? undefined : setTimeout(giveUp, patienceMs)
      const enter = () => {
        clearTimeout(timer)
        resolve()
      }
      this.#waiting.add(enter)
    })
  }

  #next(): void {
    for (const enter of this.#waiting) {
      this.#waiting.delete(enter)
      enter()
      return
    }
    this.#running--
  }
}
