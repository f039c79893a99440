import { FairQueue } from './fair-queue.ts'

/**
 * Limits the tasks that use the same thing, named by a key, at the same time. A task with several keys takes them in
 * one order, so that two tasks never wait for each other.
 */
export class KeyedQueue {
  readonly #atOnce: number
  readonly #queues = new Map<string, { readonly queue: FairQueue; tasks: number }>()

  constructor(atOnce: number) {
    this.#atOnce = atOnce
  }

  /** Keys that some task uses or waits for. */
  get size(): number {
    return this.#queues.size
  }

  /** Rejects with `unavailable` if the task has not got its turn at all keys before the deadline. */
  run<Outcome>(
    keys: readonly string[],
    client: string,
    work: () => Promise<Outcome>,
    deadline: number,
  ): Promise<Outcome> {
    const sorted = keys.length > 1 ? [...new Set(keys)].sort() : keys
    return this.#take(sorted, client, work, deadline)
  }

  async #take<Outcome>(
    [key, ...rest]: readonly string[],
    client: string,
    work: () => Promise<Outcome>,
    deadline: number,
  ): Promise<Outcome> {
    if (key === undefined) return work()
    let entry = this.#queues.get(key)
    if (entry === undefined) {
      // A task may wait for another key while it has this one. So one client has at most one place here.
      entry = { queue: new FairQueue({ atOnce: this.#atOnce, perClient: 1 }), tasks: 0 }
      this.#queues.set(key, entry)
    }
    entry.tasks++
    try {
      const left = Math.max(0, deadline - performance.now())
      return await entry.queue.run(client, () => this.#take(rest, client, work, deadline), left)
    } finally {
      if (--entry.tasks === 0) this.#queues.delete(key)
    }
  }
}
