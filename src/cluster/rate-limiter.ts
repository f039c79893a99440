import type { Allowance, Clock, RateLimiter } from '../core/ports.ts'

/** Counts in this process. Bounded: beyond `clients` keys at once, the windows that opened first are forgotten. */
export class MemoryRateLimiter implements RateLimiter {
  readonly limit: number
  readonly windowMs: number
  readonly #clock: Clock
  readonly #clients: number
  /** In the order in which they opened, which is the order in which they end. */
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
    return {
      allowed: window.taken <= this.limit,
      excess: Math.max(0, window.taken - this.limit),
      remaining: Math.max(0, this.limit - window.taken),
      resetSeconds: Math.max(1, Math.ceil((window.end - now) / 1000)),
    }
  }

  giveBack(key: string): void {
    const window = this.#windows.get(key)
    if (window !== undefined && window.taken > 0) window.taken--
  }

  #current(key: string, now: number): Window {
    const known = this.#windows.get(key)
    // A clock that was set back must not lock anybody out for longer than a window.
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

interface Window {
  taken: number
  readonly end: number
}
