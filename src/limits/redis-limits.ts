import { hash } from 'node:crypto'
import { Redis, type Result } from 'ioredis'
import type { Allowance, RateLimiter } from '../core/ports.ts'
import { waiting } from '../lib/waits.ts'
import { allowanceOf, type Limits, type MemoryLimits } from './memory-limits.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** See `countScript`. */
    count(keys: number, ...keysThenValues: (string | number)[]): Result<number[], Context>
  }
}

export interface RedisOptions {
  readonly url: string
  /** Milliseconds for an answer, and for a new connection. */
  readonly timeoutMs: number
  /** All instances need the same one. */
  readonly secret: string
  /** For the time without Redis. */
  readonly local: MemoryLimits
  /** Called after each message, also if Redis has not answered it in time. */
  readonly onAnswer?: (seconds: number) => void
  /** Called once when Redis goes away, with the reason, and once when it is back. */
  onChange(up: boolean, reason?: string): void
}

/** Limits that instances share through Redis. While it is away a local limiter counts, and nobody waits for Redis. */
export class RedisLimits implements Limits, Disposable {
  readonly #options: RedisOptions
  #client: Redis | undefined
  /** Whether Redis has run the script on this connection, and nothing has failed on it since. */
  #up = false
  #upSince = 0
  #batch: Batch | undefined
  #toldAway = false
  #disposed = false
  #retry: NodeJS.Timeout | undefined

  private constructor(options: RedisOptions) {
    this.#options = options
  }

  /** Resolves after the first attempt to connect, whatever its result. */
  static async open(options: RedisOptions): Promise<RedisLimits> {
    const limits = new RedisLimits(options)
    await limits.#connect()
    return limits
  }

  get up(): boolean {
    return this.#up
  }

  limiter(name: string, limit: number, windowMs: number): RateLimiter {
    const local = this.#options.local.limiter(name, limit, windowMs)
    if (limit === Number.POSITIVE_INFINITY) return local // there is nothing to share
    const salt = `${this.#options.secret} ${name} `
    const count = (key: string, amount: 1 | -1) => this.#count(hidden(salt + key), amount, limit, windowMs)
    return {
      limit,
      windowMs,
      take: key => (this.#up ? count(key, 1).catch(() => local.take(key)) : local.take(key)),
      giveBack: key => (this.#up ? count(key, -1).catch(() => local.giveBack(key)) : local.giveBack(key)),
    }
  }

  /** All changes of one turn of the event loop travel together: most of the cost is that of a message. */
  async #count(key: string, amount: 1 | -1, limit: number, windowMs: number): Promise<Allowance> {
    this.#batch ??= this.#newBatch()
    const { keys, values, sent } = this.#batch
    const index = 2 * (keys.push(key) - 1)
    values.push(amount, windowMs)
    const results = await waiting('redis', sent)
    return allowanceOf(results[index] ?? 0, limit, results[index + 1] ?? 0)
  }

  #newBatch(): Batch {
    const keys: string[] = []
    const values: number[] = []
    const sent = new Promise(setImmediate).then(async () => {
      this.#batch = undefined
      const client = this.#client
      const sentAt = performance.now()
      try {
        return (await client?.count(keys.length, ...keys, ...values)) ?? []
      } catch (error) {
        if (client !== undefined) this.#lose(client)
        throw error
      } finally {
        this.#options.onAnswer?.((performance.now() - sentAt) / 1000)
      }
    })
    return { keys, values, sent }
  }

  /** A lost connection is replaced, at most one in a second. Only if that fails too, Redis is away. */
  #lose(client: Redis): void {
    if (client !== this.#client || !this.#up) return // lost already
    this.#up = false
    this.#retry = setTimeout(() => this.#connect(), Math.max(0, this.#upSince + retryMs - performance.now()))
  }

  async #connect(): Promise<void> {
    this.#client?.disconnect()
    const { url, timeoutMs } = this.#options
    const client = new Redis(url, {
      lazyConnect: true,
      connectTimeout: timeoutMs,
      commandTimeout: timeoutMs,
      disconnectTimeout: 1, // a Redis that hangs does not say goodbye
      enableOfflineQueue: false,
      enableReadyCheck: false,
      retryStrategy: null, // a lost connection is replaced by a new client
      scripts: { count: { lua: countScript } },
    })
    this.#client = client
    const { promise: failed, reject } = Promise.withResolvers<never>()
    client.on('error', reject) // also a database number that Redis does not have
    client.on('close', () => {
      reject(new Error('connection closed'))
      this.#lose(client)
    })
    try {
      // A replica, or a Redis without memory, does not run the script.
      await Promise.race([failed, client.connect().then(() => client.count(1, 'duet:probe', 1, 1_000))])
      this.#up = !this.#disposed
      this.#upSince = performance.now()
      if (this.#toldAway) this.#options.onChange(true)
      this.#toldAway = false
    } catch (error) {
      client.disconnect()
      if (this.#disposed) return
      if (!this.#toldAway) this.#options.onChange(false, reasonOf(error))
      this.#toldAway = true
      this.#retry = setTimeout(() => this.#connect(), retryMs)
    }
  }

  [Symbol.dispose](): void {
    this.#disposed = true
    this.#up = false
    clearTimeout(this.#retry)
    this.#client?.disconnect()
  }
}

interface Batch {
  readonly keys: string[]
  readonly values: number[]
  readonly sent: Promise<readonly number[]>
}

const retryMs = 1_000

/**
 * Keys are addresses and e-mails, which Redis must not tell. A hash without a secret would not hide them: there are only
 * four billion IPv4 addresses to try. Half of the hash is enough to tell all keys apart.
 */
function hidden(key: string): string {
  return `duet:${hash('sha256', key, 'base64url').slice(0, 22)}`
}

/** Without the text of the error, which may quote the password or a key. */
function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code ?? /^[A-Z]{2,}(?= )/.exec(message)?.[0] ?? (/^[\w ]+$/.test(message) ? message : 'connection failed')
}

/**
 * Adds 1 or -1 to each counter. A new one expires after its window; one that expires later (because the clock of Redis
 * was set back, or the window was longer before) starts again. What is given back neither creates a counter nor makes one
 * negative. Returns for each the count and the milliseconds until it expires.
 */
const countScript = `
local results = {}
for i, key in ipairs(KEYS) do
  local amount, window = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  local count, left = 0, 0
  if amount == '1' then
    count, left = redis.call('INCRBY', key, 1), redis.call('PTTL', key)
    if left < 0 or left > window then
      count, left = 1, window
      redis.call('SET', key, 1, 'PX', window)
    end
  elseif tonumber(redis.call('GET', key) or '0') > 0 then
    count = redis.call('INCRBY', key, -1)
  end
  results[2 * i - 1], results[2 * i] = count, left
end
return results`
