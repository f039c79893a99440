import type { Clock } from '../core/ports.ts'
import { CountTable, countMemory, mostThreads } from '../limits/count-table.ts'
import { type LocalLimiter, MemoryRateLimiter } from '../limits/rate-limiter.ts'
import { refusalMemory } from '../limits/refused-clients.ts'
import { SharedLock } from '../limits/shared-lock.ts'
import { SharedRateLimiter, windowMemory } from '../limits/shared-rate-limiter.ts'

/** The memory that all threads share. */
export interface ThreadMemory {
  readonly windows: Readonly<Record<string, SharedArrayBuffer>>
  readonly counts: SharedArrayBuffer
  readonly refusals: SharedArrayBuffer
  /** The time of the latest arrival, in nanoseconds of the system's clock. */
  readonly arrival: SharedArrayBuffer
}

/** The names of all limiters; see `wiring/limiters.ts` and `app.ts`. */
const limiterNames = ['requests', 'exempt requests', 'failed logins', 'logins'] as const

export function newThreadMemory(): ThreadMemory {
  return {
    windows: Object.fromEntries(limiterNames.map(name => [name, windowMemory()])),
    counts: countMemory(),
    refusals: refusalMemory(),
    arrival: new SharedArrayBuffer(8),
  }
}

/** Removes what a thread has left behind. */
export function forgetThread({ windows, counts }: ThreadMemory, owner: number): void {
  for (const memory of Object.values(windows)) new SharedLock(new Int32Array(memory), 0, mainOwner).releaseFor(owner)
  new CountTable(counts, mainOwner).forget(owner)
}

export function sharedLimiter(
  { windows }: ThreadMemory,
  owner: number,
  clock: Clock,
): (name: string, limit: number, windowMs: number) => LocalLimiter {
  return (name, limit, windowMs) => {
    const memory = windows[name]
    if (memory === undefined) throw new Error(`Threads have no memory for the limiter ${name}`)
    if (limit === Number.POSITIVE_INFINITY) return new MemoryRateLimiter(limit, windowMs, clock) // nothing to share
    return new SharedRateLimiter(limit, windowMs, clock, memory, owner)
  }
}

const mainOwner = mostThreads + 1
