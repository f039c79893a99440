import pg from 'pg'
import { unavailable } from '../../core/errors.ts'
import type { Randomness, StoreObserver } from '../../core/ports.ts'
import { bounds } from '../bounds.ts'
import { type Row, type Statement, sql } from '../sql.ts'
import type { Timeouts } from '../timeouts.ts'
import { isTooManyConnections, postgresError } from './errors.ts'
import { type CommitSlot, idleTimeout, lockTimeout, PostgresSession, statementTimeout } from './session.ts'

export interface PoolOptions {
  readonly url: string
  readonly poolMax: number
  readonly pooler: boolean
  readonly observer: StoreObserver
  readonly randomness: Randomness
  readonly timeouts: Timeouts
}

/**
 * Planner settings. Statements get one generic plan, which does not know the value of a limit. PostgreSQL then assumes
 * that the limit is a tenth of the table. With the default settings it would make a new plan for each use, or read and
 * sort whole tables. Each of our statements can find its rows in order by an index.
 */
export const planning = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_sort: 'off',
  max_parallel_workers_per_gather: '0',
  jit: 'off',
} as const

/** The statements that give the role of this connection the planner settings that it lacks. */
export async function missingSettings(
  read: (statement: Statement) => Promise<readonly Row[]>,
): Promise<readonly string[]> {
  const missing: string[] = []
  for (const [name, value] of Object.entries(planning)) {
    const [row] = await read(sql`select current_setting(${name}), quote_ident(current_user)`)
    if (row?.[0] !== value) missing.push(`alter role ${row?.[1]} set ${name} = ${value}`)
  }
  return missing
}

/**
 * A pool of connections. Each is lent for one piece of work at a time, and the time to wait for one is limited. The
 * next free connection goes to the request that has waited longest. Unlike `pg.Pool`, it keeps working with fewer
 * connections while PostgreSQL refuses further ones, and its requests have deadlines.
 */
export class PostgresPool implements AsyncDisposable {
  readonly #url: string
  readonly #observer: StoreObserver
  readonly #randomness: Randomness
  readonly #timeouts: Timeouts
  readonly #pooler: boolean
  readonly #max: number
  /** How many connections there may be at the moment. Less than `#max` while PostgreSQL refuses further ones. */
  #limit: number
  /** Connections that are open or being opened. */
  #open = 0
  /** The one that was used last is lent first. */
  readonly #idle: { readonly session: PostgresSession; readonly since: number }[] = []
  readonly #waiting = new Set<Waiter>()
  /**
   * Commit slots of connections that were closed without an error. They are reused, so that an instance leaves few rows
   * in `commit_marks`.
   */
  readonly #freeSlots: CommitSlot[] = []
  readonly #sweeping: NodeJS.Timeout
  #growing: NodeJS.Timeout | undefined
  #closed: PromiseWithResolvers<void> | undefined

  constructor({ url, poolMax, pooler, observer, randomness, timeouts }: PoolOptions) {
    this.#url = url
    this.#max = poolMax
    this.#limit = poolMax
    this.#pooler = pooler
    this.#observer = observer
    this.#randomness = randomness
    this.#timeouts = timeouts
    this.#sweeping = setInterval(() => this.#closeIdle(), idleMs / 4).unref()
  }

  async use<Outcome>(deadline: number, work: (session: PostgresSession) => Promise<Outcome>): Promise<Outcome> {
    if (this.#closed !== undefined) throw unavailable(new Error('The store is closed'))
    const session = this.#idle.pop()?.session ?? (await this.#next(deadline))
    try {
      return await work(session)
    } finally {
      this.#take(session)
    }
  }

  #next(deadline: number): Promise<PostgresSession> {
    if (this.#waiting.size >= bounds.waiting) throw unavailable(new Error('Too many operations wait'))
    const { promise, resolve, reject } = Promise.withResolvers<PostgresSession>()
    const left = Math.max(0, deadline - performance.now())
    const late = () =>
      waiter.reject(waiter.refused ?? unavailable(new Error('No database connection was free in time')))
    const timer = setTimeout(late, left)
    const leave = () => {
      clearTimeout(timer)
      this.#waiting.delete(waiter)
    }
    const waiter: Waiter = {
      resolve: session => {
        leave()
        resolve(session)
      },
      reject: error => {
        leave()
        reject(error)
      },
      refused: undefined,
    }
    this.#waiting.add(waiter)
    if (this.#open < this.#limit) this.#grow(waiter)
    return promise
  }

  /** Opens a connection. It goes to the request that has waited longest. */
  async #grow(waiter: Waiter): Promise<void> {
    this.#open++
    try {
      this.#take(await this.#connect())
    } catch (error) {
      this.#forgetOne()
      // If PostgreSQL gives no further connection, the caller waits for one that is in use.
      if (isTooManyConnections(error)) this.#stopGrowing(waiter, error)
      else {
        waiter.reject(error)
        this.#growForWaiting()
      }
    }
  }

  async #connect(): Promise<PostgresSession> {
    const client = new pg.Client({
      connectionString: this.#url,
      application_name: 'duet',
      connectionTimeoutMillis: this.#timeouts.operation,
      keepAlive: true,
      ...(!this.#pooler && sessionSettings(this.#timeouts)), // a pooler accepts none
    })
    const slot = this.#freeSlots.pop() ?? { id: this.#randomness.id(), attempt: 0 }
    const session = new PostgresSession(client, slot, this.#timeouts, this.#pooler)
    // Losing a connection while it is idle, or between two statements of a verb, must not crash the process.
    client.on('error', error => this.#lose(session, error))
    try {
      await client.connect()
    } catch (error) {
      this.#freeSlots.push(slot)
      throw error
    }
    return session
  }

  /** For some seconds, the pool makes do with the connections that it has. */
  #stopGrowing(waiter: Waiter, refused: unknown): void {
    this.#limit = Math.max(1, Math.min(this.#open, this.#max))
    this.#growing ??= setTimeout(() => {
      this.#growing = undefined
      this.#limit = this.#max
    }, refusedMs * 100).unref()
    waiter.refused = refused
    // If all connections belong to other programs, ask again soon.
    if (this.#open === 0) setTimeout(() => this.#growForWaiting(), refusedMs)
  }

  #growForWaiting(): void {
    const [waiter] = this.#waiting
    if (waiter !== undefined && this.#open < this.#limit) this.#grow(waiter)
  }

  /** Takes a connection back, or a new one. */
  #take(session: PostgresSession): void {
    const [waiter] = this.#waiting
    if (session.broken || this.#closed !== undefined) this.#close(session)
    else if (waiter === undefined) this.#idle.push({ session, since: performance.now() })
    else waiter.resolve(session)
  }

  #lose(session: PostgresSession, error: Error): void {
    session.broken = true
    const at = this.#idle.findIndex(idle => idle.session === session)
    if (at < 0) return // its user gets the error
    this.#idle.splice(at, 1)
    this.#close(session)
    this.#observer.trouble('An idle database connection was lost', postgresError(error))
  }

  /**
   * The slot of a broken connection is not reused: the server may still be running its transaction and hold a lock on
   * the slot's row.
   */
  #close(session: PostgresSession): void {
    session.client.end(() => {})
    if (!session.broken) this.#freeSlots.push(session.slot)
    this.#forgetOne()
    this.#growForWaiting()
  }

  #forgetOne(): void {
    this.#open--
    if (this.#open === 0) this.#closed?.resolve()
  }

  #closeIdle(): void {
    const stale = this.#idle.findLastIndex(({ since }) => since < performance.now() - idleMs)
    for (const { session } of this.#idle.splice(0, stale + 1)) this.#close(session)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = Promise.withResolvers()
    clearInterval(this.#sweeping)
    clearTimeout(this.#growing)
    for (const { reject } of this.#waiting) reject(unavailable(new Error('The store is closed')))
    for (const { session } of this.#idle.splice(0)) this.#close(session)
    if (this.#open > 0) await this.#closed.promise
  }
}

/** A request for a connection. */
interface Waiter {
  resolve(session: PostgresSession): void
  reject(error: unknown): void
  /** Why PostgreSQL gave no connection. */
  refused: unknown
}

function sessionSettings(timeouts: Timeouts): pg.ClientConfig {
  const options = Object.entries(planning).map(([name, value]) => `-c ${name}=${value}`)
  return {
    statement_timeout: statementTimeout(timeouts),
    lock_timeout: lockTimeout(timeouts),
    idle_in_transaction_session_timeout: idleTimeout(timeouts),
    options: options.join(' '),
  }
}

/** How long to wait before asking for a connection again. */
const refusedMs = 50

/** How long a connection stays open without being used. */
const idleMs = 60_000
