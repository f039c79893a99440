import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { unavailable } from '../../core/errors.ts'
import type { StoreObserver } from '../../core/ports.ts'
import { bounds } from '../bounds.ts'
import { type Statement, sql } from '../sql.ts'
import type { Timeouts } from '../timeouts.ts'
import { isTooManyConnections, postgresError } from './errors.ts'
import { planning } from './planning.ts'
import { PostgresSession } from './session.ts'

export interface PoolOptions {
  readonly url: string
  readonly poolMax: number
  /** Whether each transaction may run on another connection of a pooler between us and PostgreSQL. */
  readonly pooler: boolean
  readonly observer: StoreObserver
  readonly timeouts: Timeouts
}

/** `pg.Pool`, with deadlines. It keeps working with fewer connections while PostgreSQL refuses further ones. */
export class PostgresPool implements AsyncDisposable {
  readonly #pool: pg.Pool
  readonly #max: number
  readonly #sessions = new WeakMap<pg.PoolClient, PostgresSession>()
  /** Connections that PostgreSQL has accepted. */
  #open = 0
  #growing: NodeJS.Timeout | undefined
  #users = 0
  #isClosed = false
  #unused: (() => void) | undefined

  constructor({ url, poolMax, pooler, observer, timeouts }: PoolOptions) {
    this.#max = poolMax
    this.#pool = new pg.Pool({
      connectionString: url,
      application_name: 'duet',
      max: poolMax,
      connectionTimeoutMillis: timeouts.operation,
      idleTimeoutMillis: 60_000,
      keepAlive: true,
      ...(!pooler && settingsFor(timeouts)), // a pooler accepts none
    })
    this.#pool.on('connect', client => {
      this.#open++
      client.once('end', () => this.#open--)
      this.#pool.options.lock_timeout = lockTimeout(timeouts) // of the next connection
      client.on('error', () => {}) // its user gets the error
      this.#sessions.set(client, new PostgresSession(client, !pooler))
    })
    const message = 'An idle database connection was lost'
    this.#pool.on('error', error => observer.trouble(message, postgresError(error)))
  }

  async use<Outcome>(deadline: number, work: (session: PostgresSession) => Promise<Outcome>): Promise<Outcome> {
    if (this.#isClosed) throw unavailable(new Error('The store is closed'))
    this.#users++
    try {
      const client = await this.#connect(deadline)
      const session = this.#sessions.get(client) ?? new PostgresSession(client, false)
      try {
        return await work(session)
      } finally {
        client.release(session.broken || session.isFull)
      }
    } finally {
      if (--this.#users === 0) this.#unused?.()
    }
  }

  /** If PostgreSQL gives no further connection, the caller waits for one that is in use. */
  async #connect(deadline: number): Promise<pg.PoolClient> {
    if (this.#pool.waitingCount >= bounds.waiting) throw unavailable(new Error('Too many operations wait'))
    for (;;) {
      try {
        return await this.#next(deadline)
      } catch (error) {
        if (!isTooManyConnections(error)) throw error
        this.#stopGrowing()
        if (this.#open > 0) continue
        // All connections belong to other programs.
        if (performance.now() + refusedMs > deadline) throw error
        await delay(refusedMs)
        this.#pool.options.max ||= 1
      }
    }
  }

  #next(deadline: number): Promise<pg.PoolClient> {
    const { promise, resolve, reject } = Promise.withResolvers<pg.PoolClient>()
    let isLate = false
    const late = () => {
      isLate = true
      reject(unavailable(new Error('No database connection was free in time')))
    }
    const timer = this.#pool.idleCount > 0 ? undefined : setTimeout(late, Math.max(1, deadline - performance.now()))
    this.#pool.connect((error, client, release) => {
      clearTimeout(timer)
      if (client === undefined) reject(error)
      else if (isLate) release()
      else resolve(client)
    })
    return promise
  }

  /** For some seconds, the pool makes do with the connections that it has. */
  #stopGrowing(): void {
    this.#pool.options.max = this.#open
    this.#growing ??= setTimeout(() => {
      this.#growing = undefined
      this.#pool.options.max = this.#max
    }, refusedMs * 100).unref()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#growing)
    this.#isClosed = true
    if (this.#users > 0) await new Promise<void>(resolve => (this.#unused = resolve))
    await this.#pool.end()
  }
}

/** How long to wait before asking for a connection again. */
const refusedMs = 50

function settingsFor(timeouts: Timeouts): pg.ClientConfig {
  const options = Object.entries(planning).map(([name, value]) => `-c ${name}=${value}`)
  return {
    statement_timeout: statementTimeout(timeouts),
    lock_timeout: lockTimeout(timeouts),
    idle_in_transaction_session_timeout: idleTimeout(timeouts),
    options: options.join(' '),
  }
}

/** The statements that set the timeouts of a transaction, as far as its connection does not have them. */
export function timeoutsUntil(deadline: number, timeouts: Timeouts, pooler: boolean): readonly Statement[] {
  // Slightly less than the remaining time, so that PostgreSQL gives up before we do and the connection stays usable.
  const left = Math.max(1, Math.round(deadline - performance.now() - 50))
  if (!pooler && left >= statementTimeout(timeouts)) return []
  const all = pooler && {
    lock_timeout: lockTimeout(timeouts),
    idle_in_transaction_session_timeout: idleTimeout(timeouts),
  }
  return Object.entries({ statement_timeout: left, ...all }).map(
    ([name, ms]) => sql`select set_config(${name}, ${String(ms)}, true)`,
  )
}

/** Random: if two transactions wait for each other, one of them gives up first. */
function lockTimeout({ lock }: Timeouts): number {
  return Math.round(lock * (0.3 + Math.random()))
}

/** Less than an operation has, so that PostgreSQL gives up before we do and the connection stays usable. */
function statementTimeout({ operation }: Timeouts): number {
  return Math.max(Math.round(operation / 2), operation - 100)
}

/** PostgreSQL ends a transaction whose client has vanished. Its locks would hold back writes and events. */
function idleTimeout({ operation }: Timeouts): number {
  return operation * 2
}
