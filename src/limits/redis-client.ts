import { Redis, type Result } from 'ioredis'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** See `countScript`. */
    count(keys: number, ...keysThenArguments: (string | number)[]): Result<number[], Context>
  }
}

export interface RedisAddress {
  readonly host: string
  readonly port: number
  readonly username?: string
  readonly password?: string
  readonly database: number
  readonly tls: boolean
}

/** A new connection, and whether Redis runs the script on it: a replica, or a Redis without memory, does not. */
export function openClient({ host, port, username, password, database, tls }: RedisAddress, timeoutMs: number) {
  const client = new Redis({
    host,
    port,
    username,
    password,
    db: database,
    ...(tls && { tls: {} }),
    lazyConnect: true,
    connectTimeout: timeoutMs,
    disconnectTimeout: 100, // a Redis that hangs does not say goodbye
    enableOfflineQueue: false,
    enableReadyCheck: false,
    retryStrategy: null, // a lost connection is replaced by a new client
    scripts: { count: { lua: countScript } },
  })
  const { promise: failed, reject } = Promise.withResolvers<never>()
  client.on('error', reject) // also a database number that Redis does not have
  const timer = setTimeout(() => setImmediate(reject, noAnswer()), 2 * timeoutMs)
  const working = client.connect().then(() => client.count(1, 'duet:probe', 1, 1_000))
  const ready = Promise.race([failed, working]).finally(() => clearTimeout(timer))
  return { client, ready }
}

export const noAnswer = () => new Error('no answer in time')

/**
 * Adds to counters that expire. For each key it takes an amount and the milliseconds after which a new counter
 * expires, and returns the count and the milliseconds until it expires. A counter that expires later than a new one
 * would (because the clock of Redis was set back, or the window was longer before) starts again. A negative amount
 * never creates a counter, nor makes one negative.
 */
const countScript = `
local result = {}
for i, key in ipairs(KEYS) do
  local amount, window = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local count, left = 0, window
  if amount < 0 then
    count = tonumber(redis.call('GET', key) or '0')
    if count > 0 then count = redis.call('INCRBY', key, math.max(amount, -count)) end
  else
    count = redis.call('INCRBY', key, amount)
    left = redis.call('PTTL', key)
    if left < 0 or left > window then
      count, left = amount, window
      redis.call('SET', key, amount, 'PX', window)
    end
  end
  result[2 * i - 1], result[2 * i] = count, left
end
return result`
