import { oneAtATime } from './one-at-a-time.ts'

/**
 * Deletes expired rows at intervals, in small batches, so that no request waits for it. Only the size of the database
 * depends on it.
 */
export class Janitor implements AsyncDisposable {
  /** Resolves when nothing is left to delete. Rounds do not overlap. */
  readonly run: () => Promise<void>
  readonly #timer: NodeJS.Timeout
  #stopped = false

  /** `removeSome` returns how many rows it deleted; 0 means that nothing is left for now. */
  constructor(removeSome: () => Promise<number>, observer: { trouble(message: string, error: unknown): void }) {
    this.run = oneAtATime(async () => {
      try {
        while (!this.#stopped && (await removeSome()) > 0);
      } catch (error) {
        observer.trouble('Expired rows could not be deleted', error)
      }
    })
    this.#timer = setInterval(this.run, everyMs).unref()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#stopped = true
    await this.run()
  }
}

const everyMs = 60_000
