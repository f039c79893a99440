import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { unavailable } from '../../core/errors.ts'
import type { StoreObserver } from '../../core/ports.ts'
import { waited } from '../../lib/waits.ts'
import { whenLate } from '../../lib/within.ts'
import { bounds } from '../bounds.ts'
import type { Timeouts } from '../timeouts.ts'
import { postgresError, sqlState, tooManyConnections } from './errors.ts'
import { PostgresSession } from './session.ts'
import { planning, timeoutSettings } from './settings.ts'

export interface PoolOptions {
  readonly url: string
  readonly poolMax: number
  /** Whether each transaction may run on another connection of a pooler between us and PostgreSQL. */
  readonly pooler: boolean
  readonly observer: StoreObserver
  readonly timeouts: Timeouts
}

/**
 * Lends connections, the one that was used last first. A use of `pg.Pool` takes 3 to 6 µs of this process even in a hot
 * loop, and one of this pool less than 1 µs. It keeps working with fewer connections while PostgreSQL refuses further
 * ones.
 */
export class PostgresPool implements AsyncDisposable {
  readonly #options: PoolOptions
  readonly #idle: PostgresSession[] = []
  /** In their order. No connection is idle while anybody waits. */
  readonly #waiting = new Set<Waiter>()
  /** Connections that are open or being opened. */
  #open = 0
  /** Why PostgreSQL gave no further connection, and until when the pool makes do with those that it has. */
  #refused: { readonly error: unknown; readonly until: number } | undefined
  /** How many idle connections nobody has used since the last sweep. */
  #unused = 0
  readonly #sweeping = setInterval(() => this.#sweep(), idleMs).unref()
  #isClosed = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  /** Those that are being opened count too. */
  get inUse(): number {
    return this.#open - this.#idle.length
  }

  get waiting(): number {
    return this.#waiting.size
  }

  async use<Outcome>(deadline: number, work: (session: PostgresSession) => Promise<Outcome>): Promise<Outcome> {
    if (this.#isClosed) throw unavailable(new Error('The store is closed'))
    const session = this.#idle.pop() ?? (await this.#next(deadline))
    this.#unused = Math.min(this.#unused, this.#idle.length)
    try {
      return await work(session)
    } finally {
      if (session.broken || session.isFull) this.#close(session)
      else this.#lend(session)
    }
  }

  async #next(deadline: number): Promise<PostgresSession> {
    if (this.#waiting.size >= bounds.waiting) throw unavailable(new Error('Too many operations wait'))
    const begun = performance.now()
    const waiter = Promise.withResolvers<PostgresSession>()
    const late = () => {
      this.#waiting.delete(waiter)
      waiter.reject(postgresError(this.#refused?.error ?? new Error('No database connection was free in time')))
    }
    const timer = whenLate(Math.max(1, deadline - begun), late)
    this.#waiting.add(waiter)
    this.#grow([waiter])
    return waiter.promise.finally(() => {
      clearTimeout(timer)
      waited('connection', begun)
    })
  }

  /** Opens a connection for those that wait, if there may be another. If that fails, the given one gets the error. */
  async #grow([waiter]: Iterable<Waiter> = this.#waiting): Promise<void> {
    if (this.#refused !== undefined && performance.now() > this.#refused.until) this.#refused = undefined
    if (waiter === undefined || this.#open >= (this.#refused ? 1 : this.#options.poolMax)) return
    this.#open++
    try {
      this.#lend(await this.#connect())
    } catch (error) {
      this.#open--
      if (sqlState(error) === tooManyConnections) {
        this.#refused = { error, until: performance.now() + refusedMs }
        setTimeout(() => this.#grow(), refusedMs / 100) // for the case that other programs have all connections
      } else {
        this.#waiting.delete(waiter)
        waiter.reject(error)
        this.#grow()
      }
    }
  }

  async #connect(): Promise<PostgresSession> {
    const { url, pooler, observer, timeouts } = this.#options
    const client = new pg.Client({
      connectionString: url,
      application_name: 'duet',
      connectionTimeoutMillis: timeouts.operation,
      keepAlive: true,
      ...(!pooler && { ...timeoutSettings(timeouts), options: planner }), // a pooler accepts none
    })
    const session = new PostgresSession(client, !pooler)
    client.on('error', error => {
      session.broken = true
      const at = this.#idle.indexOf(session)
      if (at < 0) return // its user gets the error
      this.#idle.splice(at, 1)
      this.#close(session)
      observer.trouble('An idle database connection was lost', postgresError(error))
    })
    await client.connect()
    return session
  }

  #lend(session: PostgresSession): void {
    const [waiter] = this.#waiting
    if (waiter === undefined) this.#idle.push(session)
    else {
      this.#waiting.delete(waiter)
      waiter.resolve(session)
    }
  }

  #close(session: PostgresSession): void {
    session.end()
    this.#open--
    this.#grow()
  }

  #sweep(): void {
    for (const session of this.#idle.splice(0, this.#unused)) this.#close(session)
    this.#unused = this.#idle.length
  }

  /** Those that wait get their connections first. Nothing takes longer than its timeouts. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#sweeping)
    const { operation, commit } = this.#options.timeouts
    const end = performance.now() + operation + commit
    while ((this.#open > this.#idle.length || this.#waiting.size > 0) && performance.now() < end) await delay(5)
    for (const session of this.#idle.splice(0)) this.#close(session)
  }
}

const planner = Object.entries(planning)
  .map(([name, value]) => `-c ${name}=${value}`)
  .join(' ')

type Waiter = PromiseWithResolvers<PostgresSession>

const refusedMs = 5000

/** A connection that is not used is closed after once to twice this time. */
const idleMs = 60_000
