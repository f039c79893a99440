import type { Tally } from '../core/ports.ts'

/** Counts in the memory of this thread. */
export class MemoryTally implements Tally {
  readonly #counts = new Map<string, number>()

  add(key: string, amount: number): number {
    const count = this.count(key) + amount
    if (count === 0) this.#counts.delete(key)
    else this.#counts.set(key, count)
    return count
  }

  count(key: string): number {
    return this.#counts.get(key) ?? 0
  }
}
