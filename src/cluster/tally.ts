import type { Tally } from '../core/ports.ts'

/** Counts in the memory of this thread. */
export class MemoryTally implements Tally {
  readonly #counts = new Map<string, number>()
  readonly #things = new Map<string, Set<string>>()

  add(key: string, amount: number): number {
    const count = this.count(key) + amount
    if (count === 0) this.#counts.delete(key)
    else this.#counts.set(key, count)
    return count
  }

  count(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  join(key: string, thing: string): number {
    const things = this.#things.get(key) ?? new Set()
    this.#things.set(key, things.add(thing))
    return things.size
  }

  leave(key: string, thing: string): void {
    const things = this.#things.get(key)
    things?.delete(thing)
    if (things?.size === 0) this.#things.delete(key)
  }
}
