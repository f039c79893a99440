import type { RateLimiter } from '../core/ports.ts'
import type { LocalLimiter } from './rate-limiter.ts'
import type { RedisAddress } from './redis-client.ts'
import { RedisConnection, type RedisOptions } from './redis-connection.ts'
import { RedisCounters } from './redis-counters.ts'
import { RedisRateLimiter } from './redis-rate-limiter.ts'

interface RedisLimitsOptions extends RedisOptions {
  /** All instances need the same one. */
  readonly secret: string
  /** Creates the limiters for the time without Redis. */
  readonly local: (name: string, limit: number, windowMs: number) => LocalLimiter
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
    const local = this.#options.local(name, limit, windowMs)
    if (limit === Number.POSITIVE_INFINITY) return local // there is nothing to share
    return new RedisRateLimiter(name, this.#options.secret, this.#counters, local)
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]()
  }
}
