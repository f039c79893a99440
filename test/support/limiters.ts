import type { RateLimiter } from '../../src/core/ports.ts'
import { MemoryRateLimiter } from '../../src/limits/rate-limiter.ts'
import { RedisLimits } from '../../src/limits/redis-limits.ts'
import { SharedRateLimiter, windowMemory } from '../../src/limits/shared-rate-limiter.ts'
import { TestClock } from './clock.ts'
import { askRedis, newRedisDatabase, redisMissing } from './redis.ts'
import { testTimeoutMs } from './wait.ts'

/** A place where limiters count. The test controls its time. */
export interface CountingPlace extends AsyncDisposable {
  /** A new limiter. Where counts are shared, it shares those of all limiters with the same name. */
  limiter(name: string, limit: number, windowMs: number): RateLimiter
  pass(milliseconds: number): Promise<void>
}

export interface LimiterKind {
  readonly name: string
  /** The reason to skip tests on this kind, or false. */
  readonly skip: string | false
  create(): Promise<CountingPlace>
}

const memory: LimiterKind = {
  name: 'memory',
  skip: false,
  create: async () => {
    const clock = new TestClock()
    return {
      limiter: (_name, limit, windowMs) => new MemoryRateLimiter(limit, windowMs, clock),
      pass: async milliseconds => clock.pass(milliseconds),
      [Symbol.asyncDispose]: async () => {},
    }
  },
}

export const redis: LimiterKind = {
  name: 'Redis',
  skip: redisMissing() ?? false,
  create: async () => {
    const url = await newRedisDatabase()
    const limits = await openLimits(url)
    return {
      limiter: (name, limit, windowMs) => limits.limiter(name, limit, windowMs),
      // The clock of Redis cannot be moved. Redis uses it only to expire keys, so the script shortens their lifetimes.
      pass: async milliseconds => {
        await askRedis(url, 'eval', letTimePass, 0, milliseconds)
      },
      [Symbol.asyncDispose]: async () => limits[Symbol.dispose](),
    }
  },
}

const shared: LimiterKind = {
  name: 'memory that threads share',
  skip: false,
  create: async () => {
    const clock = new TestClock()
    const windows = new Map<string, SharedArrayBuffer>()
    return {
      limiter(name, limit, windowMs) {
        const memory = windows.get(name) ?? windowMemory()
        windows.set(name, memory)
        return new SharedRateLimiter(limit, windowMs, clock, memory, 1)
      },
      pass: async milliseconds => clock.pass(milliseconds),
      [Symbol.asyncDispose]: async () => {},
    }
  },
}

export const limiterKinds = [memory, shared, redis]

const letTimePass = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  redis.call('PEXPIRE', key, redis.call('PTTL', key) - tonumber(ARGV[1]))
end`

/** Limits in Redis, as an instance of the service has them. */
export function openLimits(
  url: string,
  options: Partial<Parameters<typeof RedisLimits.open>[1]> = {},
): Promise<RedisLimits> {
  const { hostname, port, pathname, password } = new URL(url)
  const database = Number(pathname.slice(1))
  const local = (_name: string, limit: number, windowMs: number) =>
    new MemoryRateLimiter(limit, windowMs, new TestClock())
  return RedisLimits.open(
    { host: hostname, port: Number(port), database, tls: false, ...(password !== '' && { password }) },
    { timeoutMs: testTimeoutMs, onChange: () => {}, secret: 'a secret', local, ...options },
  )
}
