import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { Randomness } from '../core/ports.ts'
import { MemoryEventBus } from './memory-event-bus.ts'

export interface PostgresEventBusParts {
  readonly url: string
  readonly randomness: Randomness
  /** The cause is a code, since messages of PostgreSQL may name users and hosts. */
  readonly warn: (message: string, cause?: string) => void
}

/**
 * Reaches all instances on one PostgreSQL database, by LISTEN and NOTIFY. It has a connection of its own, and opens a
 * new one when that is lost. Notifications are sent outside of transactions: inside, they would make all commits of the
 * server wait for each other. Without notifications, the feed looks into the log every second anyway.
 */
export class PostgresEventBus extends MemoryEventBus implements AsyncDisposable {
  readonly #parts: PostgresEventBusParts
  /** In each notification of this instance, which knows about its own events already. */
  readonly #id: string
  #client: pg.Client | undefined
  #opening: Promise<void>
  #isSending = false
  #sendAgain = false
  #retry: NodeJS.Timeout | undefined
  #check: NodeJS.Timeout | undefined
  /** Runs until our own notification has come back. */
  #echo: NodeJS.Timeout | undefined
  #wasLost = false
  #isStopped = false

  constructor(parts: PostgresEventBusParts) {
    super()
    this.#parts = parts
    this.#id = parts.randomness.id()
    this.#opening = this.#open()
  }

  /** Whether there is a connection for notifications. */
  get listening(): boolean {
    return this.#client !== undefined
  }

  override announce(): void {
    this.#sendAgain = true
    if (!this.#isSending) void this.#send()
  }

  /** The first announcement is sent at once. Those that follow wait for some milliseconds and become one. */
  async #send(): Promise<void> {
    this.#isSending = true
    while (this.#sendAgain && !this.#isStopped) {
      this.#sendAgain = false
      const client = this.#client
      this.#echo ??= setTimeout(() => this.#warnOfPooler(client), echoMs).unref()
      await client?.query("select pg_notify('duet_events', $1)", [this.#id]).catch(() => this.#lose(client))
      await pause(pauseMs, undefined, { ref: false })
    }
    this.#isSending = false
  }

  /** Behind a pooler that lends connections for one transaction, LISTEN has no effect. */
  #warnOfPooler(client: pg.Client | undefined): void {
    if (client === undefined || client !== this.#client) this.#echo = undefined
    else this.#parts.warn('LISTEN has no effect on DATABASE_URL: events of other instances arrive up to a second late')
  }

  async #open(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.#parts.url,
      application_name: 'duet events',
      connectionTimeoutMillis: answerMs,
      query_timeout: answerMs,
      keepAlive: true,
    })
    client.on('error', () => this.#lose(client))
    client.on('end', () => this.#lose(client))
    client.on('notification', ({ payload }) => this.#receive(payload))
    try {
      await client.connect()
      await client.query('listen duet_events')
      this.#client = client
      if (this.#wasLost) this.#parts.warn('Notifications of PostgreSQL arrive again')
      this.#wasLost = false
      this.tell(false) // notifications may have been missed
      // A connection can break without a sign. Then this announcement gets no answer in time.
      this.#check = setInterval(() => this.announce(), checkMs).unref()
    } catch (error) {
      const { code, name } = error as Error & { code?: string }
      this.#tryAgain('Notifications of PostgreSQL do not arrive; trying again', code ?? name)
      await client.end().catch(() => {})
    }
  }

  #receive(payload: string | undefined): void {
    if (payload !== this.#id) this.tell(false)
    else {
      clearTimeout(this.#echo)
      this.#echo = undefined
    }
  }

  #lose(client: pg.Client | undefined): void {
    if (client === undefined || this.#client !== client) return
    this.#client = undefined
    clearInterval(this.#check)
    void client.end().catch(() => {})
    this.#tryAgain('The connection for notifications of PostgreSQL was lost')
  }

  #tryAgain(warning: string, cause?: string): void {
    if (this.#isStopped) return
    if (!this.#wasLost) this.#parts.warn(warning, cause)
    this.#wasLost = true
    this.#retry = setTimeout(() => {
      this.#opening = this.#open()
    }, retryMs).unref()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#retry)
    clearTimeout(this.#echo)
    await this.#opening
    clearInterval(this.#check)
    await this.#client?.end().catch(() => {})
  }
}

const pauseMs = 5
const retryMs = 500
const checkMs = 15_000
const answerMs = 5_000
const echoMs = 2_000
