import assert from 'node:assert/strict'
import type { RateLimiter } from '../../src/core/ports.ts'
import { limitsMemory, MemoryLimits } from '../../src/limits/memory-limits.ts'
import { RedisLimits, type RedisOptions } from '../../src/limits/redis-limits.ts'
import { TestClock } from '../support/clock.ts'
import { askRedis, newRedisDatabase, redisMissing } from '../support/redis.ts'
import { testTimeoutMs } from '../support/wait.ts'

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

/** The calls of a test go to two threads by turns. */
const memory: LimiterKind = {
  name: 'memory that threads share',
  skip: false,
  create: async () => {
    const clock = new TestClock()
    const shared = limitsMemory()
    const threads = [new MemoryLimits(clock, shared), new MemoryLimits(clock, shared)]
    return {
      limiter(name, limit, windowMs) {
        const limiters = threads.map(thread => thread.limiter(name, limit, windowMs))
        let calls = 0
        const next = () => limiters[calls++ % 2] ?? assert.fail()
        return { limit, windowMs, take: key => next().take(key), giveBack: key => next().giveBack(key) }
      },
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
      pass: milliseconds => askRedis(url, 'eval', letTimePass, 0, milliseconds).then(() => {}),
      [Symbol.asyncDispose]: async () => limits[Symbol.dispose](),
    }
  },
}

export const limiterKinds = [memory, redis]

const letTimePass = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  redis.call('PEXPIRE', key, redis.call('PTTL', key) - tonumber(ARGV[1]))
end`

/** Limits in Redis, as an instance of the service has them. */
export function openLimits(url: string, options: Partial<RedisOptions> = {}): Promise<RedisLimits> {
  const local = new MemoryLimits(new TestClock())
  return RedisLimits.open({ url, timeoutMs: testTimeoutMs, onChange: () => {}, secret: 'a secret', local, ...options })
}
