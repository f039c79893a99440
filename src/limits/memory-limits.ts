import { hash, randomFillSync } from 'node:crypto'
import type { Allowance, Clock, RateLimiter, RefusedClients } from '../core/ports.ts'

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
  readonly #locked: Int32Array
  readonly #cells: Float64Array
  readonly #secret: string

  constructor(clock: Clock, memory = limitsMemory()) {
    this.#clock = clock
    this.#locked = new Int32Array(memory, 0, 1)
    this.#cells = new Float64Array(memory, headBytes)
    this.#secret = secretIn(memory).toString('hex')
  }

  limiter(name: string, limit: number, windowMs: number) {
    const hashOf = keyedHash(this.#secret + name)
    return {
      limit,
      windowMs,
      take: (key: string) => this.#take(hashOf(key), limit, windowMs),
      giveBack: (key: string) => this.#giveBack(hashOf(key)),
    }
  }

  refusedClients(): RefusedClients {
    const hashOf = keyedHash(`${this.#secret}refused clients`)
    return {
      add: (client, seconds) => this.#take(hashOf(client), 0, 1000 * seconds).excess === 1,
      has: client => this.#find(hashOf(client), this.#clock.now()) >= 0,
    }
  }

  #take(hash: number, limit: number, windowMs: number): Allowance {
    this.#lock()
    // Read only now: a time from before the wait can be older than the window, as if the clock had been set back.
    const now = this.#clock.now()
    let slot = this.#find(hash, now)
    if (slot < 0) {
      slot = this.#free(hash, now)
      this.#cells.set([hash, now + windowMs, windowMs, 0], slot)
    }
    const taken = this.#cell(slot + places.taken) + 1
    this.#cells[slot + places.taken] = taken
    const leftMs = this.#cell(slot + places.end) - now
    this.#unlock()
    return allowanceOf(taken, limit, leftMs)
  }

  #giveBack(hash: number): void {
    this.#lock()
    const slot = this.#find(hash, this.#clock.now())
    const taken = slot < 0 ? 0 : this.#cell(slot + places.taken)
    if (taken > 0) this.#cells[slot + places.taken] = taken - 1
    this.#unlock()
  }

  /** The slot of a window that has not ended, or -1. */
  #find(hash: number, now: number): number {
    const first = groupOf(hash)
    for (let slot = first; slot < first + groupCells; slot += slotCells)
      if (this.#cell(slot) === hash && this.#isOpen(slot, now)) return slot
    return -1
  }

  /** A slot without a window, or the one whose window ends first. */
  #free(hash: number, now: number): number {
    const first = groupOf(hash)
    let best = first
    for (let slot = first; slot < first + groupCells; slot += slotCells) {
      if (!this.#isOpen(slot, now)) return slot
      if (this.#cell(slot + places.end) < this.#cell(best + places.end)) best = slot
    }
    return best
  }

  /** If the clock is set back, no client may be blocked for longer than one window. */
  #isOpen(slot: number, now: number): boolean {
    const end = this.#cell(slot + places.end)
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
    for (let tries = 0; Atomics.compareExchange(this.#locked, 0, 0, 1) !== 0; tries++) {
      if (tries > spins + pauses) return
      if (tries > spins) Atomics.wait(this.#locked, 0, 1, pauseMs)
    }
  }

  #unlock(): void {
    Atomics.store(this.#locked, 0, 0)
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
  const memory = new SharedArrayBuffer(headBytes + 8 * groups * groupCells)
  randomFillSync(secretIn(memory))
  return memory
}

function secretIn(memory: SharedArrayBuffer): Buffer {
  return Buffer.from(memory, 8, headBytes - 8)
}

/** Remembers the hashes of recent keys: a look-up takes a tenth of the time of a hash, and every request needs one. */
function keyedHash(secret: string): (key: string) => number {
  const recent = new Map<string, number>()
  return key => {
    const known = recent.get(key)
    if (known !== undefined) return known
    const made = Number.parseInt(hash('sha256', `${secret} ${key}`).slice(0, 13), 16) // 52 bits: an exact number
    if (recent.size >= mostRecent) recent.clear()
    recent.set(key, made)
    return made
  }
}

function groupOf(hash: number): number {
  return (hash & (groups - 1)) * groupCells
}

const mostRecent = 10_000
/** The lock, and the secret of the hash. */
const headBytes = 32
/** A slot begins with the hash of its key. */
const places = { end: 1, length: 2, taken: 3 }
const slotCells = 4
const groupCells = 8 * slotCells
const groups = 2 ** 16
const spins = 200
const pauses = 2_000
const pauseMs = 0.05
