import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { unavailable } from '../../core/errors.ts'
import type { Randomness, StoreObserver } from '../../core/ports.ts'
import { bounds } from '../bounds.ts'
import { type Row, type Statement, sql } from '../sql.ts'
import type { Timeouts } from '../timeouts.ts'
import { isTooManyConnections, postgresError } from './errors.ts'
import { type CommitSlot, idleTimeout, PostgresSession } from './session.ts'

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

/** A pool of connections. Each is lent for one piece of work at a time, and the time to wait for one is limited. */
export class PostgresPool implements AsyncDisposable {
  readonly #pool: pg.Pool
  readonly #randomness: Randomness
  readonly #timeouts: Timeouts
  readonly #sessions = new WeakMap<pg.PoolClient, PostgresSession>()
  /**
   * Commit slots of connections that were closed without an error. They are reused, so that an instance leaves few rows
   * in `commit_marks`.
   */
  readonly #freeSlots: CommitSlot[] = []
  /** Functions that reject the callers waiting for a connection. A `pg.Pool` that is closing never settles them. */
  readonly #waiting = new Set<(cause: Error) => void>()
  readonly #max: number
  readonly #pooler: boolean
  #growing: NodeJS.Timeout | undefined
  #closed = false

  constructor({ url, poolMax, pooler, observer, randomness, timeouts }: PoolOptions) {
    this.#max = poolMax
    this.#pooler = pooler
    this.#randomness = randomness
    this.#timeouts = timeouts
    this.#pool = new pg.Pool({
      connectionString: url,
      max: poolMax,
      application_name: 'duet',
      connectionTimeoutMillis: timeouts.operation,
      idleTimeoutMillis: 60_000,
      keepAlive: true,
      ...(!pooler && sessionSettings(timeouts)), // a pooler accepts none
      types: { getTypeParser },
    })
    // Losing a connection while it is idle, or between two statements of a verb, must not crash the process.
    this.#pool.on('error', error => observer.trouble('An idle database connection was lost', postgresError(error)))
    this.#pool.on('connect', client => client.on('error', () => {}))
    this.#pool.on('remove', client => this.#recycleSlot(client))
  }

  async use<Outcome>(deadline: number, work: (session: PostgresSession) => Promise<Outcome>): Promise<Outcome> {
    if (this.#closed) throw unavailable(new Error('The store is closed'))
    if (this.#pool.waitingCount >= bounds.waiting) throw unavailable(new Error('Too many operations wait'))
    const client = await this.#connect(deadline)
    const session = this.#sessionOf(client)
    try {
      return await work(session)
    } finally {
      client.release(session.broken)
    }
  }

  /** If PostgreSQL gives no further connection, the caller waits for one that is in use. */
  async #connect(deadline: number): Promise<pg.PoolClient> {
    for (;;) {
      try {
        return await this.#connectOnce(deadline)
      } catch (error) {
        if (!isTooManyConnections(error) || this.#closed) throw error
        this.#stopGrowing()
        // All connections belong to other programs. Ask again soon.
        if (this.#pool.totalCount === 0) await delay(refusedMs)
        if (performance.now() > deadline) throw error
      }
    }
  }

  /** For some seconds, the pool makes do with the connections that it has. */
  #stopGrowing(): void {
    const { options } = this.#pool
    options.max = Math.max(1, Math.min(this.#pool.totalCount, this.#max))
    this.#growing ??= setTimeout(() => {
      this.#growing = undefined
      options.max = this.#max
    }, refusedMs * 100).unref()
  }

  async #connectOnce(deadline: number): Promise<pg.PoolClient> {
    const connecting = this.#pool.connect()
    const { promise: late, reject } = Promise.withResolvers<never>()
    const refuse = (cause: Error) => reject(unavailable(cause))
    const left = Math.max(0, deadline - performance.now())
    const timer = setTimeout(() => refuse(new Error('No database connection was free in time')), left)
    this.#waiting.add(refuse)
    try {
      return await Promise.race([connecting, late])
    } catch (error) {
      connecting.then(
        client => client.release(),
        () => {},
      )
      throw error
    } finally {
      this.#waiting.delete(refuse)
      clearTimeout(timer)
    }
  }

  #sessionOf(client: pg.PoolClient): PostgresSession {
    let session = this.#sessions.get(client)
    if (session === undefined) {
      const slot = this.#freeSlots.pop() ?? { id: this.#randomness.id(), attempt: 0 }
      session = new PostgresSession(client, slot, this.#timeouts, this.#pooler)
      this.#sessions.set(client, session)
    }
    return session
  }

  // The slot of a broken connection is not reused: the server may still be running its transaction and hold a lock on
  // the slot's row.
  #recycleSlot(client: pg.PoolClient): void {
    const session = this.#sessions.get(client)
    if (session !== undefined && !session.broken) this.#freeSlots.push(session.slot)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    clearTimeout(this.#growing)
    for (const refuse of this.#waiting) refuse(new Error('The store is closed'))
    await this.#pool.end()
  }
}

function sessionSettings(timeouts: Timeouts): pg.PoolConfig {
  const options = Object.entries(planning).map(([name, value]) => `-c ${name}=${value}`)
  return {
    statement_timeout: timeouts.operation,
    lock_timeout: timeouts.lock,
    idle_in_transaction_session_timeout: idleTimeout(timeouts),
    options: options.join(' '),
  }
}

// Integers become numbers (the schema keeps them below 2^53). All other values stay strings as PostgreSQL sends them,
// including JSON.
export function getTypeParser(oid: number): (text: string) => string | number {
  return integerTypes.has(oid) ? Number : text => text
}

/** How long to wait before asking for a connection again. */
const refusedMs = 50

const integerTypes = new Set([20, 21, 23])
