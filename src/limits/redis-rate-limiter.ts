import { hash } from 'node:crypto'
import type { Allowance, RateLimiter } from '../core/ports.ts'
import { allowanceOf, type LocalLimiter } from './rate-limiter.ts'
import type { RedisCounters } from './redis-counters.ts'

/** Counts in Redis, together with all other instances. While Redis is away a local limiter counts. */
export class RedisRateLimiter implements RateLimiter {
  readonly limit: number
  readonly windowMs: number
  readonly #counters: RedisCounters
  readonly #local: LocalLimiter
  readonly #salt: string

  /** Limiters with the same name and the same secret share their counts. */
  constructor(name: string, secret: string, counters: RedisCounters, local: LocalLimiter) {
    this.limit = local.limit
    this.windowMs = local.windowMs
    this.#counters = counters
    this.#local = local
    this.#salt = `${secret} ${name} `
  }

  take(key: string): Allowance | Promise<Allowance> {
    if (!this.#counters.up) return this.#local.take(key)
    return new Promise(resolve => {
      this.#counters.add(this.#hidden(key), 1, this.windowMs, (taken, leftMs) => {
        resolve(taken === undefined ? this.#local.take(key) : allowanceOf(taken, this.limit, leftMs))
      })
    })
  }

  giveBack(key: string): void | Promise<void> {
    if (!this.#counters.up) return this.#local.giveBack(key)
    return new Promise(resolve => {
      this.#counters.add(this.#hidden(key), -1, this.windowMs, taken => {
        if (taken === undefined) this.#local.giveBack(key)
        resolve()
      })
    })
  }

  /**
   * Keys are addresses and e-mails, which Redis must not tell. A hash without a secret would not hide them: there are
   * only four billion IPv4 addresses to try. Half of the hash is enough to tell all keys apart.
   */
  #hidden(key: string): string {
    return `duet:${hash('sha256', this.#salt + key, 'base64url').slice(0, 22)}`
  }
}
