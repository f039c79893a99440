import type { Clock, RateLimiter } from '../core/ports.ts'
import { MemoryRateLimiter } from './rate-limiter.ts'
import type { RedisAddress } from './redis-client.ts'
import { RedisConnection, type RedisOptions } from './redis-connection.ts'
import { RedisCounters } from './redis-counters.ts'
import { RedisRateLimiter } from './redis-rate-limiter.ts'

interface RedisLimitsOptions extends RedisOptions {
  /** All instances need the same one. */
  readonly secret: string
  /** For the time without Redis. */
  readonly clock: Clock
}

/** Limiters that share one connection to Redis. */
export class RedisLimits implements Disposable {
  readonly #connection: RedisConnection
  readonly #counters: RedisCounters
  readonly #options: RedisLimitsOptions

  static async open(address: RedisAddress, options: RedisLimitsOptions): Promise<RedisLimits> {
    return new RedisLimits(await RedisConnection.open(address, options), options)
  }

  private constructor(connection: RedisConnection, options: RedisLimitsOptions) {
    this.#connection = connection
    this.#counters = new RedisCounters(connection)
    this.#options = options
  }

  get up(): boolean {
    return this.#connection.up
  }

  limiter(name: string, limit: number, windowMs: number): RateLimiter {
    const local = new MemoryRateLimiter(limit, windowMs, this.#options.clock)
    if (limit === Number.POSITIVE_INFINITY) return local // there is nothing to share
    return new RedisRateLimiter(name, this.#options.secret, this.#counters, local)
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]()
  }
}
