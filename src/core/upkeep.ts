import type { StoreObserver } from './ports.ts'

/**
 * Removes expired rows, now and then, in small portions, so that nobody waits for it. Nothing depends on it but
 * the size of the database.
 */
export class Upkeep implements AsyncDisposable {
  readonly #removeSome: () => Promise<number>
  readonly #observer: Pick<StoreObserver, 'trouble'>
  readonly #timer: NodeJS.Timeout
  #round: Promise<void> | undefined
  #stopped = false

  /** `removeSome` says how many it removed; none means that nothing is left for now. */
  constructor(removeSome: () => Promise<number>, observer: Pick<StoreObserver, 'trouble'>, everyMs = 60_000) {
    this.#removeSome = removeSome
    this.#observer = observer
    this.#timer = setInterval(() => this.run(), everyMs).unref()
  }

  /** Ends when nothing is left to remove. Rounds do not overlap. */
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
      this.#observer.trouble('Removing what has had its time failed', error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#stopped = true
    await this.#round
  }
}
