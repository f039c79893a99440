import type { StoreObserver } from './ports.ts'

/**
 * Deletes expired rows at intervals, in small batches, so that no request waits for it. Only the size of the database
 * depends on it.
 */
export class Janitor implements AsyncDisposable {
  readonly #removeSome: () => Promise<number>
  readonly #observer: Pick<StoreObserver, 'trouble'>
  readonly #timer: NodeJS.Timeout
  #round: Promise<void> | undefined
  #stopped = false

  /** `removeSome` returns how many rows it deleted; 0 means that nothing is left for now. */
  constructor(removeSome: () => Promise<number>, observer: Pick<StoreObserver, 'trouble'>, everyMs = 60_000) {
    this.#removeSome = removeSome
    this.#observer = observer
    this.#timer = setInterval(() => this.run(), everyMs).unref()
  }

  /** Resolves when nothing is left to delete. Rounds do not overlap. */
  run(): Promise<void> {
    this.#round ??= this.#removeAll().finally(() => {
      this.#round = undefined
    })
    return this.#round
  }

  async #removeAll(): Promise<void> {
    try {
      while (!this.#stopped && (await this.#removeSome()) > 0);
    } catch (error) {
      this.#observer.trouble('Expired rows could not be deleted', error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#stopped = true
    await this.#round
  }
}
