import type { Config } from '../config.ts'
import type { LoginLimits } from '../core/tokens/operations.ts'
import type { TrustedProxies } from '../http/client-address.ts'
import { exemptLimit, type RateLimit } from '../http/rate-limit.ts'
import { RequestsAtOnce } from '../lib/requests-at-once.ts'
import type { Limits, MemoryLimits } from '../limits/memory-limits.ts'
import { secretOf, type TokenKeys } from '../security/keys.ts'
import type { Base } from './base.ts'

/** Limits that count in Redis if there is one, else in the memory of this process, over all its threads. */
export async function openLimits(
  { redis: url, redisTimeoutMs: timeoutMs, database }: Config,
  { common, logger, metrics }: Base,
  keys: TokenKeys,
  parts: AsyncDisposableStack,
): Promise<Limits> {
  if (url === undefined) {
    if (database.kind === 'postgres' && common.isFirst)
      logger.warn('Without REDIS_URL each instance has its own rate and login limits')
    return common.limits
  }
  const onChange = (up: boolean, reason?: string) => {
    if (up) logger.info('Redis is back: instances share their limits again')
    else logger.warn({ reason }, 'Redis is away: until it is back, each instance has its own limits')
  }
  const secret = await secretOf(keys, 'keys of limits in Redis')
  // Loaded only if it is needed: the driver takes almost a tenth of a second of CPU.
  const { RedisLimits } = await import('../limits/redis-limits.ts')
  const onAnswer = metrics.distribution('duet_redis_seconds', 'Time until Redis has answered a message')
  const limits = parts.use(await RedisLimits.open({ url, timeoutMs, secret, local: common.limits, onChange, onAnswer }))
  metrics.gauge('duet_redis_up', 'Whether limits are shared through Redis now', () => Number(limits.up), 'min')
  return limits
}

/** What exempt requests are counted by, and who is refused, only protects this process. */
export function rateLimitOf(
  { rateLimit: { max, windowMs, paths } }: Config,
  limits: Limits,
  local: MemoryLimits,
  proxies: TrustedProxies,
): RateLimit | undefined {
  if (max === 0) return undefined
  const limiter = limits.limiter('requests', max, windowMs)
  const exempt = local.limiter('exempt requests', exemptLimit.max, exemptLimit.windowMs)
  const atOnce = new RequestsAtOnce(Math.max(2, Math.ceil(max / 50)))
  return { limiter, exempt, atOnce, paths, proxies, refused: local.refusedClients() }
}

/** Per minute: `max` failed logins per client and e-mail, and ten times as many attempts per client. 0: no limit. */
export function loginLimits(max: number, limits: Limits): LoginLimits {
  const limit = (name: string, attempts: number) => limits.limiter(name, attempts || Number.POSITIVE_INFINITY, 60_000)
  return { perEmail: limit('failed logins', max), perClient: limit('logins', max * 10) }
}
