import { unavailable } from './errors.ts'

/** A semaphore with a bounded queue. It rejects with `unavailable` if the queue is full or if work waits too long. */
export class Semaphore {
  readonly #atOnce: number
  readonly #mayWait: number
  readonly #waiting = new Set<() => void>()
  #running = 0

  constructor({ atOnce, mayWait }: { readonly atOnce: number; readonly mayWait: number }) {
    this.#atOnce = atOnce
    this.#mayWait = mayWait
  }

  async run<Outcome>(work: () => Promise<Outcome>, timeoutMs?: number): Promise<Outcome> {
    if (this.#running < this.#atOnce) this.#running++
    else await this.#turn(timeoutMs)
    try {
      return await work()
    } finally {
      this.#next()
    }
  }

  // Work that ends passes its place to the work that has waited longest, so the number of running tasks stays the same.
  #turn(timeoutMs: number | undefined): Promise<void> {
    if (this.#waiting.size >= this.#mayWait) throw unavailable(new Error('Too many tasks are waiting'))
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting.delete(enter)
        reject(unavailable(new Error('The task waited too long')))
      }
      const timer = timeoutMs === undefined ? undefined : setTimeout(giveUp, timeoutMs)
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
