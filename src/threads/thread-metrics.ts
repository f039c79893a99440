import type { MetricsOfThread } from '../server/metrics.ts'
import { within } from './serving.ts'

interface Thread {
  readonly index: number
  call<Result>(name: string): Promise<Result>
}

/** The metrics of all threads. */
export class ThreadMetrics {
  /**
   * The last metrics of each thread. A thread that answers late counts with these: if it were left out, the sums would
   * fall, which Prometheus takes for a restart.
   */
  readonly #latest = new Map<number, MetricsOfThread>()
  readonly #threads: ReadonlyMap<number, Thread>
  readonly #waitMs: number
  #collecting: Promise<readonly MetricsOfThread[]> | undefined

  constructor(threads: ReadonlyMap<number, Thread>, waitMs = 1_000) {
    this.#threads = threads
    this.#waitMs = waitMs
  }

  /** Concurrent calls share one collection. */
  collect(): Promise<readonly MetricsOfThread[]> {
    this.#collecting ??= this.#collectNow().finally(() => {
      this.#collecting = undefined
    })
    return this.#collecting
  }

  /** Call it when a thread has ended. */
  forget(index: number): void {
    this.#latest.delete(index)
  }

  async #collectNow(): Promise<readonly MetricsOfThread[]> {
    await Promise.all(Array.from(this.#threads.values(), thread => this.#ask(thread)))
    return [...this.#latest.values()]
  }

  async #ask(thread: Thread): Promise<void> {
    const metrics = await within(thread.call<MetricsOfThread | undefined>('metrics'), this.#waitMs).catch(
      () => undefined,
    )
    if (metrics !== undefined && this.#threads.get(thread.index) === thread) this.#latest.set(thread.index, metrics)
  }
}
