import type { Tally } from '../core/ports.ts'
import type { CountTable } from './count-table.ts'
import { MemoryTally } from './tally.ts'

/** Counts together with the other threads of this process. When the shared memory is full, it counts for itself. */
export class SharedTally implements Tally {
  readonly #name: string
  readonly #table: CountTable
  /** What found no room in the table. */
  readonly #own = new MemoryTally()

  /** Tallies with the same name count together. */
  constructor(name: string, table: CountTable) {
    this.#name = name
    this.#table = table
  }

  add(key: string, amount: number): number {
    if (this.#own.count(key) !== 0) return this.#own.add(key, amount)
    return this.#table.add(`${this.#name} ${key}`, amount) ?? this.#own.add(key, amount)
  }

  count(key: string): number {
    return this.#own.count(key) || this.#table.count(`${this.#name} ${key}`)
  }
}
