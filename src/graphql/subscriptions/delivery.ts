import type { AppError } from '../../core/errors.ts'
import type { Group } from './group.ts'

/** An event on its way. It is done when all groups that keep up were told; who takes too long becomes late. */
export class Delivery {
  readonly #waited = new Set<Group>()
  readonly #done = Promise.withResolvers<void>()
  #timer: NodeJS.Timeout | undefined

  constructor() {
    this.#done.promise.catch(() => {}) // whoever awaits it is told; nobody may be left to await it
  }

  /** Rejects where the store is away. */
  get done(): Promise<void> {
    return this.#done.promise
  }

  waitFor(group: Group): void {
    this.#waited.add(group)
  }

  /** All groups are known: they have so much time. */
  start(patienceMs: number): void {
    if (this.#waited.size === 0) this.#done.resolve()
    else this.#timer = setTimeout(() => this.#goOn(), patienceMs)
  }

  told(group: Group): void {
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
