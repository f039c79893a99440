import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { unavailable } from '../../core/errors.ts'
import type { StoreObserver } from '../../core/ports.ts'
import { bounds } from '../bounds.ts'
import type { Timeouts } from '../timeouts.ts'
import { isTooManyConnections, postgresError } from './errors.ts'
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

  constructor({ url, poolMax, pooler, observer, timeouts }: PoolOptions) {
    const planner = Object.entries(planning).map(([name, value]) => `-c ${name}=${value}`)
    this.#max = poolMax
    this.#pool = new pg.Pool({
      connectionString: url,
      application_name: 'duet',
      max: poolMax,
      connectionTimeoutMillis: timeouts.operation,
      idleTimeoutMillis: 60_000,
      keepAlive: true,
      ...(!pooler && { ...timeoutSettings(timeouts), options: planner.join(' ') }), // a pooler accepts none
    })
    this.#pool.on('connect', client => {
      this.#open++
      client.once('end', () => this.#open--)
      client.on('error', () => {}) // its user gets the error
      this.#sessions.set(client, new PostgresSession(client, !pooler))
      if (!pooler) Object.assign(this.#pool.options, timeoutSettings(timeouts)) // others for the next connection
    })
    const lost = 'An idle database connection was lost'
    this.#pool.on('error', error => observer.trouble(lost, postgresError(error)))
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
      this.#users--
    }
  }

  /** If PostgreSQL gives no further connection, the caller waits for one that is in use. */
  async #connect(deadline: number): Promise<pg.PoolClient> {
    if (this.#pool.waitingCount >= bounds.waiting) throw unavailable(new Error('Too many operations wait'))
    for (;;) {
      try {
        return await (this.#pool.idleCount > 0 ? this.#pool.connect() : this.#next(deadline))
      } catch (error) {
        if (!isTooManyConnections(error)) throw error
        this.#stopGrowing()
        if (this.#open > 0) continue
        // All connections belong to other programs. Meanwhile, nobody else asks for one.
        await delay(refusedMs)
        this.#pool.options.max ||= 1
        if (performance.now() > deadline) throw error
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
    const timer = setTimeout(late, Math.max(1, deadline - performance.now()))
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
    this.#isClosed = true
    clearTimeout(this.#growing)
    while (this.#users > 0) await delay(5) // the end of `pg.Pool` forgets those that wait for a connection
    await this.#pool.end()
  }
}

/** How long to wait before asking for a connection again. */
const refusedMs = 50
