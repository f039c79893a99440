import { hash, randomFillSync } from 'node:crypto'
import type { Allowance, Clock, RateLimiter, RefusedClients } from '../core/ports.ts'

/** A limiter that knows its counts at once. */
export interface LocalLimiter extends RateLimiter {
  take(key: string): Allowance
  giveBack(key: string): void
}

/** Creates limiters. Those with the same name count together. */
export interface Limits {
  limiter(name: string, limit: number, windowMs: number): RateLimiter
}

/**
 * Limits in memory, which the threads of a process share, so that their counts are exact. Each window has a slot, in
 * groups of eight by a secret hash: clients choose some of the keys, and must not find two with one slot. In a full group
 * the window that ends first is dropped; with 200,000 windows that happens to about one in two hundred of them.
 */
export class MemoryLimits implements Limits {
  readonly #clock: Clock
  readonly #cells: Int32Array
  readonly #ends: Float64Array
  readonly #secret: string

  constructor(clock: Clock, memory = limitsMemory()) {
    this.#clock = clock
    this.#cells = new Int32Array(memory)
    this.#ends = new Float64Array(memory)
    this.#secret = this.#cells.slice(1, headCells).join()
  }

  limiter(name: string, limit: number, windowMs: number): LocalLimiter {
    const hashOf = keyedHash(this.#secret + name)
    return {
      limit,
      windowMs,
      take: key => this.#take(hashOf(key), limit, windowMs),
      giveBack: key => this.#giveBack(hashOf(key)),
    }
  }

  refusedClients(): RefusedClients {
    const hashOf = keyedHash(`${this.#secret}refused clients`)
    return {
      add: (client, seconds) => this.#take(hashOf(client), 0, 1000 * seconds).excess === 1,
      has: client => this.#find(hashOf(client), this.#clock.now()) >= 0,
    }
  }

  #take(id: Hash, limit: number, windowMs: number): Allowance {
    this.#lock()
    // Read only now: a time from before the wait can be older than the window, as if the clock had been set back.
    const now = this.#clock.now()
    let slot = this.#find(id, now)
    if (slot < 0) {
      slot = this.#free(id, now)
      this.#cells.set([id.high, id.low, 0, windowMs], slot + places.high)
      this.#ends[slot >> 1] = now + windowMs
    }
    const taken = this.#cell(slot + places.taken) + 1
    this.#cells[slot + places.taken] = taken
    const leftMs = (this.#ends[slot >> 1] ?? 0) - now
    this.#unlock()
    return allowanceOf(taken, limit, leftMs)
  }

  #giveBack(id: Hash): void {
    this.#lock()
    const slot = this.#find(id, this.#clock.now())
    const taken = slot < 0 ? 0 : this.#cell(slot + places.taken)
    if (taken > 0) this.#cells[slot + places.taken] = taken - 1
    this.#unlock()
  }

  /** The slot of a window that has not ended, or -1. */
  #find({ high, low }: Hash, now: number): number {
    const first = groupOf(high)
    for (let slot = first; slot < first + groupCells; slot += slotCells) {
      const isSame = this.#cell(slot + places.high) === high && this.#cell(slot + places.low) === low
      if (isSame && this.#isOpen(slot, now)) return slot
    }
    return -1
  }

  /** A slot without a window, or the one whose window ends first. */
  #free({ high }: Hash, now: number): number {
    const first = groupOf(high)
    let best = first
    for (let slot = first; slot < first + groupCells; slot += slotCells) {
      if (!this.#isOpen(slot, now)) return slot
      if ((this.#ends[slot >> 1] ?? 0) < (this.#ends[best >> 1] ?? 0)) best = slot
    }
    return best
  }

  /** If the clock is set back, no client may be blocked for longer than one window. */
  #isOpen(slot: number, now: number): boolean {
    const end = this.#ends[slot >> 1] ?? 0
    return now < end && now >= end - this.#cell(slot + places.length)
  }

  #cell(index: number): number {
    return this.#cells[index] ?? 0
  }

  /**
   * The work under the lock takes less than a microsecond. A thread that was ended in the middle of it never unlocks, so
   * after a tenth of a second the lock is taken in any case: a wrong count is better than a service that hangs.
   */
  #lock(): void {
    for (let tries = 0; Atomics.compareExchange(this.#cells, 0, 0, 1) !== 0; tries++) {
      if (tries > spins + pauses) return
      if (tries > spins) Atomics.wait(sleeping, 0, 0, pauseMs)
    }
  }

  #unlock(): void {
    Atomics.store(this.#cells, 0, 0)
  }
}

export function allowanceOf(taken: number, limit: number, leftMs: number): Allowance {
  return {
    allowed: taken <= limit,
    excess: Math.max(0, taken - limit),
    remaining: Math.max(0, limit - taken),
    resetSeconds: Math.max(1, Math.ceil(leftMs / 1000)),
  }
}

/** Memory for all limits of a process. The system provides only the parts of it that are used. */
export function limitsMemory(): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(4 * (headCells + groups * groupCells))
  randomFillSync(new Int32Array(memory, 4, headCells - 1))
  return memory
}

/** Remembers the hashes of recent keys: a look-up takes a tenth of the time of a hash, and every request needs one. */
function keyedHash(secret: string): (key: string) => Hash {
  const recent = new Map<string, Hash>()
  return key => {
    const known = recent.get(key)
    if (known !== undefined) return known
    const digest = hash('sha256', `${secret} ${key}`)
    const word = (from: number) => Number.parseInt(digest.slice(from, from + 8), 16) | 0
    const made = { high: word(0), low: word(8) }
    if (recent.size >= mostRecent) recent.clear()
    recent.set(key, made)
    return made
  }
}

interface Hash {
  readonly high: number
  readonly low: number
}

function groupOf(high: number): number {
  return headCells + ((high >>> 0) % groups) * groupCells
}

const mostRecent = 10_000
/** The lock, and the secret of the hash. */
const headCells = 8
/** A slot begins with the end of its window, which takes two cells. */
const places = { high: 2, low: 3, taken: 4, length: 5 }
const slotCells = 6
const groupCells = 8 * slotCells
const groups = 2 ** 16
const spins = 200
const pauses = 2_000
const pauseMs = 0.05
/** Nobody notifies this cell: waiting for it is a pause. */
const sleeping = new Int32Array(new SharedArrayBuffer(4))
