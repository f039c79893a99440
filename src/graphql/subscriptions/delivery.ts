import type { AppError } from '../../core/errors.ts'

/** A group of subscribers, as far as a delivery knows it. */
export interface Waited {
  /** If true, deliveries do not wait for this group. */
  isLate: boolean
}

/**
 * One event that is being delivered. It is done when all groups that are not late have received it. A group that takes
 * too long becomes late.
 */
export class Delivery {
  readonly #waited = new Set<Waited>()
  readonly #done = Promise.withResolvers<void>()
  #timer: NodeJS.Timeout | undefined

  constructor() {
    this.#done.promise.catch(() => {}) // avoids an unhandled rejection if nobody awaits it
  }

  /** Rejects if the store is unavailable. */
  get done(): Promise<void> {
    return this.#done.promise
  }

  waitFor(group: Waited): void {
    this.#waited.add(group)
  }

  /** Call it after the last `waitFor`. The groups have this much time. */
  start(timeoutMs: number): void {
    if (this.#waited.size === 0) this.#done.resolve()
    else this.#timer = setTimeout(() => this.#goOn(), timeoutMs)
  }

  told(group: Waited): void {
    if (this.#waited.delete(group) && this.#waited.size === 0) this.#goOn()
  }

  fail(error: AppError): void {
    clearTimeout(this.#timer)
    this.#done.reject(error)
  }

  #goOn(): void {
    clearTimeout(this.#timer)
    for (const group of this.#waited) group.isLate = true
    this.#waited.clear()
    this.#done.resolve()
  }
}
