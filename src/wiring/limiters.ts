import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { RateLimiter } from '../core/ports.ts'
import type { LoginLimits } from '../core/tokens/operations.ts'
import { secretOf, type TokenKeys } from '../security/keys.ts'
import type { Metrics } from '../server/metrics.ts'
import type { Shared } from './shared.ts'

type CreateLocal = Shared['limiter']

export type CreateLimiter = (name: string, limit: number, windowMs: number) => RateLimiter

/** Limiters that count in Redis if there is one, else in the memory of this process, over all its threads. */
export async function limiters(
  { redis: address, redisTimeoutMs: timeoutMs, database }: Config,
  { keys, shared, logger, metrics }: { keys: TokenKeys; shared: Shared; logger: Logger; metrics: Metrics },
  parts: AsyncDisposableStack,
): Promise<CreateLimiter> {
  const local: CreateLocal = (name, limit, windowMs) => shared.limiter(name, limit, windowMs)
  if (address === undefined) {
    if (database.kind === 'postgres' && shared.isFirst)
      logger.warn('Without REDIS_URL each instance has its own rate and login limits')
    return local
  }
  const onChange = (up: boolean, reason?: string) => {
    if (up) logger.info('Redis is back: instances share their limits again')
    else logger.warn({ reason }, 'Redis is away: until it is back, each instance has its own limits')
  }
  const secret = await secretOf(keys, 'keys of limits in Redis')
  // Loaded only if it is needed: the driver takes almost a tenth of a second of CPU.
  const { RedisLimits } = await import('../limits/redis-limits.ts')
  const limits = parts.use(await RedisLimits.open(address, { timeoutMs, onChange, secret, local }))
  metrics.gauge('duet_redis_up', 'Whether limits are shared through Redis now', () => Number(limits.up), 'min')
  return (name, limit, windowMs) => limits.limiter(name, limit, windowMs)
}

/** Per minute: `max` failed logins per client and e-mail, and ten times as many attempts per client. 0: no limit. */
export function loginLimits(max: number, limiter: CreateLimiter): LoginLimits {
  const limit = (name: string, attempts: number) => limiter(name, attempts || Number.POSITIVE_INFINITY, 60_000)
  return { perEmail: limit('failed logins', max), perClient: limit('logins', max * 10) }
}
