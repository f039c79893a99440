import type { Redis } from 'ioredis'
import { noAnswer, openClient, type RedisAddress } from './redis-client.ts'

export interface RedisOptions {
  /** Milliseconds for an answer, and for a new connection. */
  readonly timeoutMs: number
  /** Called once when Redis goes away, with the reason, and once when it is back. */
  readonly onChange: (up: boolean, reason?: string) => void
}

/**
 * A connection to Redis that renews itself. It is `up` only after Redis has run the script on it. It goes down with
 * the first error or late answer: from then on nobody waits for Redis until a new connection works.
 */
export class RedisConnection implements Disposable {
  readonly #address: RedisAddress
  readonly #options: RedisOptions
  #client: Redis | undefined
  #up = false
  /** Whether it has answered since it is up. */
  #worked = false
  #toldAway = false
  #disposed = false
  #retry: NodeJS.Timeout | undefined
  /** Called with the results that have not come yet. */
  readonly #waiting = new Set<OnResult>()

  /** Resolves after the first attempt to connect, whatever its result. */
  static async open(address: RedisAddress, options: RedisOptions): Promise<RedisConnection> {
    const connection = new RedisConnection(address, options)
    await connection.#connect()
    return connection
  }

  private constructor(address: RedisAddress, options: RedisOptions) {
    this.#address = address
    this.#options = options
  }

  get up(): boolean {
    return this.#up
  }

  /** Runs the script. Calls back once, with the result, or with nothing if Redis cannot be asked or does not answer. */
  count(keys: readonly string[], values: readonly number[], onResult: OnResult): void {
    const client = this.#client
    if (client === undefined || !this.#up) {
      onResult(undefined)
      return
    }
    const settle = (result: readonly number[] | undefined) => {
      if (!this.#waiting.delete(settle)) return // too late
      clearTimeout(timer)
      this.#worked = result !== undefined
      onResult(result)
    }
    const onTimeout = () => {
      if (this.#waiting.has(settle)) this.#lose(client, noAnswer())
    }
    // If this process was busy, the answer may be here already, unread: `setImmediate` runs after it was read.
    const timer = setTimeout(() => setImmediate(onTimeout), this.#options.timeoutMs)
    this.#waiting.add(settle)
    client.count(keys.length, ...keys, ...values).then(settle, error => this.#lose(client, error))
  }

  async #connect(): Promise<void> {
    const { client, ready } = openClient(this.#address, this.#options.timeoutMs)
    this.#client = client
    try {
      await ready
    } catch (error) {
      this.#lose(client, error)
      return
    }
    if (this.#disposed) return
    client.once('close', () => this.#lose(client, this.#worked ? undefined : new Error('connection closed')))
    this.#up = true
    this.#worked = false
    if (this.#toldAway) this.#options.onChange(true)
    this.#toldAway = false
  }

  /** Without an error, Redis has only closed the connection, as it does with idle ones: one attempt is made at once. */
  #lose(client: Redis, error: unknown): void {
    if (client !== this.#client) return // lost already
    this.#disconnect()
    if (error === undefined) {
      this.#connect()
      return
    }
    if (!this.#toldAway) this.#options.onChange(false, reasonOf(error))
    this.#toldAway = true
    this.#retry = setTimeout(() => this.#connect(), retryMs)
  }

  #disconnect(): void {
    this.#client?.disconnect()
    this.#client = undefined
    this.#up = false
    for (const settle of this.#waiting) settle(undefined)
  }

  [Symbol.dispose](): void {
    this.#disposed = true
    clearTimeout(this.#retry)
    this.#disconnect()
  }
}

type OnResult = (result: readonly number[] | undefined) => void

const retryMs = 1_000

/** Without the text of the error, which may quote the password or a key. */
function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code ?? /^[A-Z]{2,}(?= )/.exec(message)?.[0] ?? (/^[a-z ]+$/.test(message) ? message : 'connection failed')
}
