import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { LoginLimits } from '../core/tokens/operations.ts'
import type { Limits } from '../limits/memory-limits.ts'
import { secretOf, type TokenKeys } from '../security/keys.ts'
import type { Metrics } from '../server/metrics.ts'
import type { ThreadShare } from './thread-share.ts'

/** Limits that count in Redis if there is one, else in the memory of this process, over all its threads. */
export async function openLimits(
  { redis: url, redisTimeoutMs: timeoutMs, database }: Config,
  { keys, share, logger, metrics }: { keys: TokenKeys; share: ThreadShare; logger: Logger; metrics: Metrics },
  parts: AsyncDisposableStack,
): Promise<Limits> {
  if (url === undefined) {
    if (database.kind === 'postgres' && share.isFirst)
      logger.warn('Without REDIS_URL each instance has its own rate and login limits')
    return share.limits
  }
  const onChange = (up: boolean, reason?: string) => {
    if (up) logger.info('Redis is back: instances share their limits again')
    else logger.warn({ reason }, 'Redis is away: until it is back, each instance has its own limits')
  }
  const secret = await secretOf(keys, 'keys of limits in Redis')
  // Loaded only if it is needed: the driver takes almost a tenth of a second of CPU.
  const { RedisLimits } = await import('../limits/redis-limits.ts')
  const limits = parts.use(await RedisLimits.open({ url, timeoutMs, secret, local: share.limits, onChange }))
  metrics.gauge('duet_redis_up', 'Whether limits are shared through Redis now', () => Number(limits.up), 'min')
  return limits
}

/** Per minute: `max` failed logins per client and e-mail, and ten times as many attempts per client. 0: no limit. */
export function loginLimits(max: number, limits: Limits): LoginLimits {
  const limit = (name: string, attempts: number) => limits.limiter(name, attempts || Number.POSITIVE_INFINITY, 60_000)
  return { perEmail: limit('failed logins', max), perClient: limit('logins', max * 10) }
}
