import pg from 'pg'
import type { EventBus } from '../core/events.ts'
import type { Randomness } from '../core/ports.ts'
import { MemoryEventBus } from './event-bus.ts'

export interface PostgresEventBusParts {
  readonly url: string
  readonly randomness: Randomness
  /** The cause is a code, since messages of PostgreSQL may name users and hosts. */
  readonly warn: (message: string, cause?: string) => void
}

/**
 * Notifies all instances on one PostgreSQL database, by LISTEN and NOTIFY. It has a connection of its own, and opens a
 * new one when that is lost. Notifications are sent outside of transactions: inside, they would make all commits of the
 * server wait for each other.
 *
 * Behind a pooler that lends connections for one transaction, LISTEN has no effect. This is noticed, and the instance
 * goes on without notifications of others; the feed looks into the log every second anyway.
 */
export class PostgresEventBus implements EventBus, AsyncDisposable {
  readonly #local = new MemoryEventBus()
  readonly #parts: PostgresEventBusParts
  /** In each notification of this instance, which knows about its own events already. */
  readonly #id: string
  #client: pg.Client | undefined
  #opening: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #check: NodeJS.Timeout | undefined
  #sending = false
  #sendAgain = false
  #pause: NodeJS.Timeout | undefined
  #lastAnswer: Promise<unknown> = Promise.resolve()
  /** Ends the trial of a new connection: whether a notification has arrived. */
  #arrived: (() => void) | undefined
  #wasLost = false
  #stopped = false

  constructor(parts: PostgresEventBusParts) {
    this.#parts = parts
    this.#id = parts.randomness.id()
    this.#open()
  }

  /** Whether notifications of other instances arrive. */
  get listening(): boolean {
    return this.#client !== undefined
  }

  notify(): void {
    this.#local.notify()
    this.#sendAgain = true
    if (!this.#sending && !this.#stopped) this.#send()
  }

  listen(listener: () => void): void {
    this.#local.listen(listener)
  }

  // The first notification is sent at once. Those that follow wait for it and for some milliseconds, and become one.
  #send(): void {
    this.#sendAgain = false
    this.#sending = true
    const sent = this.#client === undefined ? Promise.resolve() : this.#ask(this.#client, notification(this.#id))
    void sent
      .catch(() => {}) // then the connection's `error` or `end` follows
      .finally(() => {
        this.#pause = setTimeout(() => {
          this.#sending = false
          if (this.#sendAgain) this.#send()
        }, pauseMs).unref()
        if (this.#stopped) clearTimeout(this.#pause)
      })
  }

  /** A connection of `pg` takes one query at a time. */
  #ask(client: pg.Client, query: string | pg.QueryConfig): Promise<unknown> {
    const answer = this.#lastAnswer.then(() => client.query(query))
    this.#lastAnswer = answer.catch(() => {})
    return answer
  }

  #open(): void {
    if (this.#stopped) return
    this.#opening = this.#tryToOpen().finally(() => {
      this.#opening = undefined
    })
  }

  async #tryToOpen(): Promise<void> {
    const client = this.#newClient()
    let next = retryMs
    try {
      await client.connect()
      client.on('notification', ({ payload }) => this.#receive(payload))
      client.once('end', () => this.#lose(client))
      await client.query('listen duet_events')
      if (await this.#works()) return this.#begin(client)
      next = uselessMs
      this.#parts.warn('LISTEN has no effect on DATABASE_URL: events of other instances arrive up to a second late')
    } catch (error) {
      if (!this.#wasLost) this.#parts.warn('Notifications of PostgreSQL do not arrive; trying again', codeOf(error))
      this.#wasLost = true
    }
    await client.end().catch(() => {})
    this.#retryIn(next)
  }

  /** Sends a notification on a second connection and waits until the first one receives it. */
  async #works(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(false), trialMs)
    this.#arrived = () => resolve(true)
    const sender = this.#newClient()
    try {
      await sender.connect()
      await sender.query(notification(`${trial}${this.#id}`))
      return await promise
    } finally {
      clearTimeout(timer)
      this.#arrived = undefined
      await sender.end().catch(() => {})
    }
  }

  #begin(client: pg.Client): void {
    if (this.#stopped) {
      void client.end().catch(() => {})
      return
    }
    this.#client = client
    if (this.#wasLost) this.#parts.warn('Notifications of PostgreSQL arrive again')
    this.#wasLost = false
    this.#local.notify() // notifications may have been missed
    // A connection can break without a sign. Then this query gets no answer in time.
    this.#check = setInterval(() => this.#ask(client, 'select 1').catch(() => this.#lose(client)), checkMs).unref()
  }

  #receive(payload: string | undefined): void {
    if (payload === `${trial}${this.#id}`) this.#arrived?.()
    else if (payload !== this.#id && !payload?.startsWith(trial)) this.#local.notify()
  }

  #lose(client: pg.Client): void {
    if (this.#client !== client) return
    this.#client = undefined
    clearInterval(this.#check)
    void client.end().catch(() => {})
    if (this.#stopped) return
    this.#wasLost = true
    this.#parts.warn('The connection for notifications of PostgreSQL was lost')
    this.#retryIn(retryMs)
  }

  #retryIn(ms: number): void {
    if (!this.#stopped) this.#timer = setTimeout(() => this.#open(), ms).unref()
  }

  #newClient(): pg.Client {
    const client = new pg.Client({
      connectionString: this.#parts.url,
      application_name: 'duet events',
      connectionTimeoutMillis: answerMs,
      query_timeout: answerMs,
      keepAlive: true,
    })
    client.on('error', () => this.#lose(client))
    return client
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    clearTimeout(this.#pause)
    clearInterval(this.#check)
    this.#arrived?.()
    await this.#opening
    await this.#client?.end().catch(() => {})
  }
}

function codeOf(error: unknown): string {
  const { code, name } = error as Error & { code?: string }
  return code ?? name
}

function notification(payload: string): pg.QueryConfig {
  return { text: "select pg_notify('duet_events', $1)", values: [payload] }
}

/** Begins the payload of a notification that tries a new connection. */
const trial = 'trial '
const pauseMs = 5
const retryMs = 500
const uselessMs = 60_000
const checkMs = 15_000
const answerMs = 5_000
const trialMs = 2_000
