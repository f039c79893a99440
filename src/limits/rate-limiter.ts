import type { Allowance, Clock, RateLimiter } from '../core/ports.ts'

/** A limiter that knows its counts at once. */
export interface LocalLimiter extends RateLimiter {
  take(key: string): Allowance
  giveBack(key: string): void
}

/** Counts in the memory of this thread. Memory is bounded: above `clients` keys, the oldest windows are dropped. */
export class MemoryRateLimiter implements LocalLimiter {
  readonly limit: number
  readonly windowMs: number
  readonly #clock: Clock
  readonly #clients: number
  /** Sorted by start of the window, which is also the order in which the windows end. */
  readonly #windows = new Map<string, Window>()

  constructor(limit: number, windowMs: number, clock: Clock, clients = 100_000) {
    this.limit = limit
    this.windowMs = windowMs
    this.#clock = clock
    this.#clients = clients
  }

  take(key: string): Allowance {
    const now = this.#clock.now()
    const window = this.#current(key, now)
    window.taken++
    return allowanceOf(window.taken, this.limit, window.end - now)
  }

  giveBack(key: string): void {
    const window = this.#windows.get(key)
    if (window !== undefined && window.taken > 0) window.taken--
  }

  #current(key: string, now: number): Window {
    const known = this.#windows.get(key)
    // If the clock is set back, no client may be blocked for longer than one window.
    if (known !== undefined && now < known.end && now >= known.end - this.windowMs) return known
    this.#windows.delete(key)
    this.#forgetEnded(now)
    const window = { taken: 0, end: now + this.windowMs }
    this.#windows.set(key, window)
    return window
  }

  #forgetEnded(now: number): void {
    for (const [key, { end }] of this.#windows) {
      if (end > now && this.#windows.size < this.#clients) return
      this.#windows.delete(key)
    }
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

interface Window {
  taken: number
  readonly end: number
}
