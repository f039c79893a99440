import { randomInt } from 'node:crypto'
import type { Allowance, Clock } from '../core/ports.ts'
import { KeyedHash } from './keyed-hash.ts'
import { allowanceOf, type LocalLimiter } from './rate-limiter.ts'
import { SharedLock } from './shared-lock.ts'

/**
 * Counts in memory that the threads of this process share, exactly. Windows are in buckets of eight. When a bucket is
 * full, its window that ends first is dropped; with 100,000 clients that happens to about one in two hundred of them.
 */
export class SharedRateLimiter implements LocalLimiter {
  readonly limit: number
  readonly windowMs: number
  readonly #clock: Clock
  readonly #cells: Int32Array
  readonly #ends: Float64Array
  readonly #lock: SharedLock
  readonly #hash: KeyedHash

  /** `owner`: the number of this thread, from 1 on. */
  constructor(limit: number, windowMs: number, clock: Clock, memory: SharedArrayBuffer, owner: number) {
    this.limit = limit
    this.windowMs = windowMs
    this.#clock = clock
    this.#cells = new Int32Array(memory)
    this.#ends = new Float64Array(memory)
    this.#lock = new SharedLock(this.#cells, 0, owner)
    this.#hash = new KeyedHash(this.#cells[1] ?? 0, this.#cells[2] ?? 0)
  }

  take(key: string): Allowance {
    this.#hash.of(key)
    this.#lock.take()
    // Read only now: a time from before the wait can be older than the window, as if the clock had been set back.
    const now = this.#clock.now()
    const slot = this.#current(now)
    const taken = (this.#cells[slot + places.taken] ?? 0) + 1
    this.#cells[slot + places.taken] = taken
    const end = this.#ends[slot >> 1] ?? 0
    this.#lock.release()
    return allowanceOf(taken, this.limit, end - now)
  }

  giveBack(key: string): void {
    this.#hash.of(key)
    this.#lock.take()
    const slot = this.#find()
    const taken = slot < 0 ? 0 : (this.#cells[slot + places.taken] ?? 0)
    if (taken > 0) this.#cells[slot + places.taken] = taken - 1
    this.#lock.release()
  }

  /** Releases the lock if a thread has ended while it had it. */
  releaseFor(owner: number): void {
    this.#lock.releaseFor(owner)
  }

  /** The slot of the current window of the key that was hashed last. */
  #current(now: number): number {
    const known = this.#find()
    if (known >= 0) {
      const end = this.#ends[known >> 1] ?? 0
      // If the clock is set back, no client may be blocked for longer than one window.
      if (now < end && now >= end - this.windowMs) return known
    }
    const slot = known < 0 ? this.#free() : known
    this.#cells[slot + places.used] = 1
    this.#cells[slot + places.high] = this.#hash.high
    this.#cells[slot + places.low] = this.#hash.low
    this.#cells[slot + places.taken] = 0
    this.#ends[slot >> 1] = now + this.windowMs
    return slot
  }

  #find(): number {
    const { high, low } = this.#hash
    const first = this.#bucket()
    for (let slot = first; slot < first + bucketCells; slot += slotCells) {
      const isSame = this.#cells[slot + places.high] === high && this.#cells[slot + places.low] === low
      if (isSame && this.#cells[slot + places.used] === 1) return slot
    }
    return -1
  }

  /** A slot without a window, or the one whose window ends first. */
  #free(): number {
    const first = this.#bucket()
    let best = first
    for (let slot = first; slot < first + bucketCells; slot += slotCells) {
      if (this.#cells[slot + places.used] !== 1) return slot
      if ((this.#ends[slot >> 1] ?? 0) < (this.#ends[best >> 1] ?? 0)) best = slot
    }
    return best
  }

  #bucket(): number {
    return headCells + ((this.#hash.high >>> 0) % buckets) * bucketCells
  }
}

/** Memory for the windows of one limiter. The system provides only the parts of it that are used. */
export function windowMemory(): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(4 * (headCells + buckets * bucketCells))
  const cells = new Int32Array(memory)
  cells[1] = randomInt(2 ** 31)
  cells[2] = randomInt(2 ** 31)
  return memory
}

/** The lock, and the key of the hash. */
const headCells = 16
/** A slot begins with the end of its window, which takes two cells. */
const places = { high: 2, low: 3, taken: 4, used: 5 }
const slotCells = 6
const bucketCells = 8 * slotCells
const buckets = 2 ** 15
