import type { MetricsOfThread } from '../server/metrics.ts'
import { within } from './serving.ts'

interface Thread {
  readonly index: number
  call<Result>(name: string): Promise<Result>
}

/** The metrics of all threads. */
export class ThreadMetrics {
  /** The last metrics of each thread. Without those of a late one, sums would fall, which Prometheus takes for a restart. */
  readonly #told = new Map<number, MetricsOfThread>()
  readonly #threads: ReadonlyMap<number, Thread>
  readonly #waitMs: number
  #collecting: Promise<readonly MetricsOfThread[]> | undefined

  constructor(threads: ReadonlyMap<number, Thread>, waitMs = 1_000) {
    this.#threads = threads
    this.#waitMs = waitMs
  }

  /** All that ask at the same time get the same. */
  collect(): Promise<readonly MetricsOfThread[]> {
    this.#collecting ??= this.#collectNow().finally(() => {
      this.#collecting = undefined
    })
    return this.#collecting
  }

  /** A thread has ended. */
  forget(index: number): void {
    this.#told.delete(index)
  }

  async #collectNow(): Promise<readonly MetricsOfThread[]> {
    await Promise.all(Array.from(this.#threads.values(), thread => this.#ask(thread)))
    return [...this.#told.values()]
  }

  async #ask(thread: Thread): Promise<void> {
    const told = await within(thread.call<MetricsOfThread | undefined>('metrics'), this.#waitMs).catch(() => undefined)
    if (told !== undefined && this.#threads.get(thread.index) === thread) this.#told.set(thread.index, told)
  }
}
