import { randomInt } from 'node:crypto'
import type { Clock, RefusedClients } from '../core/ports.ts'
import { KeyedHash } from './keyed-hash.ts'

/**
 * The refused clients, in memory that threads can share. A client has one place, by a secret hash. A second client with
 * the same place takes it; the first is refused again with its next request above the limit.
 */
export class RefusalTable implements RefusedClients {
  readonly #cells: Int32Array
  readonly #hash: KeyedHash
  readonly #clock: Clock

  constructor(memory: SharedArrayBuffer, clock: Clock) {
    this.#cells = new Int32Array(memory)
    this.#hash = new KeyedHash(this.#cells[0] ?? 0, this.#cells[1] ?? 0)
    this.#clock = clock
  }

  add(client: string, seconds: number): boolean {
    const isNew = !this.has(client)
    const now = this.#seconds()
    const slot = this.#slot()
    // Threads write without a lock. The end is written last and read first, so that whoever reads an end of its own
    // client also reads its hash, and what two threads write at the same time concerns no third client.
    Atomics.store(this.#cells, slot + places.end, now)
    Atomics.store(this.#cells, slot + places.start, now)
    Atomics.store(this.#cells, slot + places.high, this.#hash.high)
    Atomics.store(this.#cells, slot + places.low, this.#hash.low)
    Atomics.store(this.#cells, slot + places.end, (now + seconds) | 0)
    return isNew
  }

  has(client: string): boolean {
    this.#hash.of(client)
    const now = this.#seconds()
    const slot = this.#slot()
    const end = Atomics.load(this.#cells, slot + places.end)
    return (
      isBefore(now, end) &&
      Atomics.load(this.#cells, slot + places.high) === this.#hash.high &&
      Atomics.load(this.#cells, slot + places.low) === this.#hash.low &&
      // If the clock is set back, no client may be refused for longer than one window.
      !isBefore(now, Atomics.load(this.#cells, slot + places.start))
    )
  }

  #slot(): number {
    return headCells + ((this.#hash.high >>> 0) % slots) * slotCells
  }

  #seconds(): number {
    return Math.floor(this.#clock.now() / 1000) | 0
  }
}

/** Seconds since 1970 do not fit into 32 bits after 2038, but their differences do. */
function isBefore(one: number, other: number): boolean {
  return ((other - one) | 0) > 0
}

export function refusalMemory(): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(4 * (headCells + slots * slotCells))
  const cells = new Int32Array(memory)
  cells[0] = randomInt(2 ** 31)
  cells[1] = randomInt(2 ** 31)
  return memory
}

/** The key of the hash. */
const headCells = 2
const places = { end: 0, start: 1, high: 2, low: 3 }
const slotCells = 4
const slots = 2 ** 14
