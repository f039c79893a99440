import { randomInt } from 'node:crypto'
import { KeyedHash } from './keyed-hash.ts'
import { SharedLock } from './shared-lock.ts'

/** The most threads that can count together. */
export const mostThreads = 8

/**
 * Counts by name, in memory that the threads of this process share. Each thread has a column of its own, so that what a
 * thread has counted can be removed when it has ended. A slot whose columns are all 0 is free.
 */
export class CountTable {
  readonly #cells: Int32Array
  readonly #lock: SharedLock
  readonly #hash: KeyedHash
  readonly #column: number

  /** `owner`: the number of this thread, from 1 on. The main thread, which only forgets, has the last one. */
  constructor(memory: SharedArrayBuffer, owner: number) {
    this.#cells = new Int32Array(memory)
    this.#lock = new SharedLock(this.#cells, 0, owner)
    this.#hash = new KeyedHash(this.#cell(1), this.#cell(2))
    this.#column = places.columns + owner - 1
  }

  /** Returns the sum of all threads, or undefined if there is no room. */
  add(name: string, amount: number): number | undefined {
    return this.#locked(() => {
      const slot = this.#slotFor(name)
      if (slot === undefined) return undefined
      this.#change(slot + this.#column, amount)
      const sum = this.#sum(slot)
      if (sum === 0 && this.#isFree(slot)) this.#remove(slot)
      return sum
    })
  }

  count(name: string): number {
    return this.#locked(() => {
      const slot = this.#find(name)
      return this.#cell(slot + places.used) === 1 ? this.#sum(slot) : 0
    })
  }

  /** Removes what a thread has counted, which has ended. */
  forget(owner: number): void {
    this.#lock.releaseFor(owner)
    const column = places.columns + owner - 1
    this.#locked(() => {
      for (let slot = headCells; slot < this.#cells.length; slot += slotCells) {
        this.#cells[slot + column] = 0
      }
      // Removing a slot moves others, so each place is looked at until it is in use or free for good.
      for (let slot = headCells; slot < this.#cells.length; slot += slotCells) {
        while (this.#cell(slot + places.used) === 1 && this.#isFree(slot)) this.#remove(slot)
      }
    })
  }

  #locked<Result>(work: () => Result): Result {
    this.#lock.take()
    try {
      return work()
    } finally {
      this.#lock.release()
    }
  }

  /** The slot of a name, which is taken if the name has none. */
  #slotFor(name: string): number | undefined {
    const slot = this.#find(name)
    if (this.#cell(slot + places.used) === 1) return slot
    if (this.#cell(usedSlots) >= mostSlots) return undefined
    this.#cells[slot + places.used] = 1
    this.#cells[slot + places.high] = this.#hash.high
    this.#cells[slot + places.low] = this.#hash.low
    this.#change(usedSlots, 1)
    return slot
  }

  /** The slot of a name, or the free slot that it would get. */
  #find(name: string): number {
    this.#hash.of(name)
    const { high, low } = this.#hash
    let slot = homeOf(high)
    while (this.#cell(slot + places.used) === 1) {
      if (this.#cell(slot + places.high) === high && this.#cell(slot + places.low) === low) return slot
      slot = after(slot)
    }
    return slot
  }

  /** Frees a slot, and moves those behind it that would not be found any more. */
  #remove(slot: number): void {
    let gap = slot
    for (let next = after(gap); this.#cell(next + places.used) === 1; next = after(next)) {
      const home = homeOf(this.#cell(next + places.high))
      const isBetween = gap < next ? home > gap && home <= next : home > gap || home <= next
      if (isBetween) continue
      this.#cells.copyWithin(gap, next, next + slotCells)
      gap = next
    }
    this.#cells.fill(0, gap, gap + slotCells)
    this.#change(usedSlots, -1)
  }

  #isFree(slot: number): boolean {
    for (let cell = slot + places.columns; cell < slot + slotCells; cell++) if (this.#cell(cell) !== 0) return false
    return true
  }

  #sum(slot: number): number {
    let sum = 0
    for (let cell = slot + places.columns; cell < slot + slotCells; cell++) sum += this.#cell(cell)
    return sum
  }

  #cell(index: number): number {
    return this.#cells[index] ?? 0
  }

  #change(index: number, amount: number): void {
    this.#cells[index] = this.#cell(index) + amount
  }
}

/** Memory for a table. The system provides only the parts of it that are used. */
export function countMemory(): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(4 * (headCells + slots * slotCells))
  const cells = new Int32Array(memory)
  cells[1] = randomInt(2 ** 31)
  cells[2] = randomInt(2 ** 31)
  return memory
}

function homeOf(high: number): number {
  return headCells + ((high >>> 0) % slots) * slotCells
}

function after(slot: number): number {
  const next = slot + slotCells
  return next < headCells + slots * slotCells ? next : headCells
}

/** The lock, the key of the hash, and how many slots are in use. */
const headCells = 16
const usedSlots = 3
const places = { used: 0, high: 1, low: 2, columns: 3 }
const slotCells = places.columns + mostThreads
const slots = 2 ** 17
/** A fuller table would be slow. */
const mostSlots = slots * 0.75
