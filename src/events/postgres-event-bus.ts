import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { Randomness } from '../core/ports.ts'
import { within } from '../lib/within.ts'
import { inRounds } from './in-rounds.ts'
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
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  /** A connection can break without a sign. Then an announcement gets no answer in time. */
  readonly #check = setInterval(() => this.announce(), checkMs).unref()
  #client: pg.Client | undefined

  constructor(parts: PostgresEventBusParts) {
    super()
    this.#parts = parts
    this.#id = parts.randomness.id()
    this.#running = this.#run(this.#stopping.signal)
  }

  get listening(): boolean {
    return this.#client !== undefined
  }

  /** Those close together become one. */
  override readonly announce: () => void = inRounds(async () => {
    const client = this.#client
    await client?.query("select pg_notify('duet_events', $1)", [this.#id]).catch(() => end(client))
  }, pauseMs)

  async #run(signal: AbortSignal): Promise<void> {
    for (let isMissing = false; !signal.aborted; ) {
      const client = new pg.Client({ ...options, connectionString: this.#parts.url })
      client.on('error', () => {})
      client.on('notification', ({ payload }) => payload !== this.#id && this.tell(false))
      let cause: string | undefined
      try {
        await client.connect()
        await client.query('listen duet_events')
        if (isMissing) this.#parts.warn('Notifications of PostgreSQL arrive again')
        isMissing = false
        this.#client = client
        this.tell(false) // notifications may have been missed
        await once(client, 'end', { signal })
      } catch (error) {
        const { code, name } = error as Error & { code?: string }
        cause = code ?? name
      }
      this.#client = undefined
      if (signal.aborted) return await end(client)
      void end(client)
      if (!isMissing) this.#parts.warn('The connection for notifications of PostgreSQL was lost or refused', cause)
      isMissing = true
      await pause(retryMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort()
    clearInterval(this.#check)
    await this.#running
  }
}

/** A PostgreSQL that hangs does not answer, and must not keep the process from its end. */
async function end(client: pg.Client | undefined): Promise<void> {
  if (client !== undefined) await within(client.end(), endMs, 'PostgreSQL does not answer').catch(() => {})
}

const options = {
  application_name: 'duet events',
  connectionTimeoutMillis: 5_000,
  query_timeout: 5_000,
  keepAlive: true,
} as const
const pauseMs = 5
const endMs = 1_000
const retryMs = 500
const checkMs = 15_000
