import { setTimeout as delay } from 'node:timers/promises'
import { BroadcastChannel } from 'node:worker_threads'
import { AppError, fault, unavailable } from '../../core/errors.ts'
import { Queue } from '../../core/queue.ts'
import { waited } from '../../lib/waits.ts'
import { bounds } from '../bounds.ts'
import type { Engine, EngineOptions } from '../engine.ts'
import { postgresDialect } from '../select/dialect.ts'
import { type Row, type Statement, sql } from '../sql.ts'
import type { ArgsOf, OutcomeOf, Steps, Verb, Verbs } from '../verb.ts'
import { diskFull, type Failure, failureOf, postgresError, sqlState } from './errors.ts'
import { type PoolOptions, PostgresPool } from './pool.ts'
import { localTimeouts } from './settings.ts'
import { transact } from './transact.ts'

/** The shared engine: any number of instances use one PostgreSQL, whose clock gives the time. */
export class PostgresEngine<V extends Verbs> implements Engine<V> {
  readonly dialect = postgresDialect
  readonly poolUse = {
    inUse: () => this.#pool.inUse,
    waiting: () => this.#pool.waiting + this.#writers.waiting,
  }
  readonly #pool: PostgresPool
  readonly #options: EngineOptions<V> & PoolOptions
  /** Limits the writes that run at once, so that connections stay free for reads while writes wait in PostgreSQL. */
  readonly #writers: Queue
  /** For each row that several writes may want. */
  readonly #turns = new Map<number | string, Queue>()
  /** The disk was full, and `ping` has not found room since. All threads are told of it. */
  #lacksRoom = false
  readonly #fullDisk: BroadcastChannel

  constructor(options: EngineOptions<V> & PoolOptions) {
    this.#pool = new PostgresPool(options)
    this.#options = options
    const atOnce = Math.max(1, Math.floor((options.poolMax * 4) / 5))
    this.#writers = new Queue({ atOnce, mayWait: bounds.waiting })
    this.#fullDisk = new BroadcastChannel(`full disk of ${options.url}`)
    this.#fullDisk.onmessage = () => {
      this.#lacksRoom = true
    }
    this.#fullDisk.unref()
  }

  async read(statement: Statement): Promise<readonly Row[]> {
    const started = performance.now()
    const deadline = started + this.#options.timeouts.operation
    const statements = [statement]
    try {
      const send = () => this.#pool.use(deadline, session => session.send(statements, deadline))
      const [rows = []] = await this.#withRetries(deadline, send)
      return rows
    } finally {
      this.#options.observer.read((performance.now() - started) / 1000)
    }
  }

  async write<Name extends keyof V & string>(name: Name, ...args: ArgsOf<V[Name]>): Promise<OutcomeOf<V[Name]>> {
    const verb: Verb | undefined = this.#options.catalogue.verbs[name]
    if (verb === undefined) throw fault(new Error(`No verb is called ${name}`))
    const started = performance.now()
    try {
      const given = args as unknown as readonly never[]
      const write = () => {
        waited('queue', started)
        return this.#transact(() => verb(...given), started)
      }
      const outcome = await this.#inTurn(this.#options.catalogue.rowOf?.(name, given), () => this.#writers.run(write))
      this.#options.observer.commit(1)
      return outcome as OutcomeOf<V[Name]>
    } finally {
      this.#options.observer.write((performance.now() - started) / 1000)
    }
  }

  /**
   * Commits a write. So a standby and a replica that does not confirm make the database unavailable, and so does a full
   * disk from the first statement on that has met it. It does not wait for its turn among the writes: a busy database is
   * available.
   */
  async ping(): Promise<void> {
    await this.#transact(this.#lacksRoom ? takeRoom : lockSomething, performance.now())
    this.#lacksRoom = false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#fullDisk.close()
    await this.#pool[Symbol.asyncDispose]()
  }

  /**
   * Of the writes of one row, one runs and one waits in PostgreSQL. Others wait here: with sixteen likes of one post or
   * creations of users at once, their waits for the row would double the CPU time of PostgreSQL.
   */
  async #inTurn<Outcome>(row: number | string | undefined, write: () => Promise<Outcome>): Promise<Outcome> {
    if (row === undefined) return write()
    const turns = this.#turns.get(row) ?? new Queue({ atOnce: 2, mayWait: bounds.waiting })
    this.#turns.set(row, turns)
    try {
      return await turns.run(write)
    } finally {
      if (turns.isIdle) this.#turns.delete(row)
    }
  }

  #transact(steps: () => Steps<unknown>, started: number): Promise<unknown> {
    const deadline = started + this.#options.timeouts.operation
    const transaction = () =>
      this.#pool.use(deadline, session => {
        // A transaction that begins too late would be cut off in the middle, and its connection would be lost too.
        if (this.#isTooLate(deadline)) throw unavailable(new Error('Too late to begin'))
        const settings = this.#options.pooler ? localTimeouts(this.#options.timeouts) : []
        return transact(session, settings, steps(), { deadline, commitMs: this.#options.timeouts.commit })
      })
    return this.#withRetries(deadline, transaction)
  }

  /**
   * Runs work, and retries it if that can help. The work must leave no trace when it fails. After a lost connection it
   * retries at once, because the pool may hold dead connections after a restart of PostgreSQL. After a conflict between
   * transactions it waits for a random time first.
   */
  async #withRetries<Outcome>(deadline: number, work: () => Promise<Outcome>): Promise<Outcome> {
    for (let tries = 1; ; tries++) {
      try {
        return await work()
      } catch (error) {
        if (error instanceof AppError) throw error
        if (sqlState(error) === diskFull) {
          if (!this.#lacksRoom) this.#fullDisk.postMessage(null)
          this.#lacksRoom = true
        }
        const { most, pauseMs } = retries[failureOf(error)]
        if (tries >= most) throw postgresError(error)
        const pause = Math.random() * pauseMs * Math.min(tries, 10)
        if (this.#isTooLate(deadline - pause)) throw unavailable(error)
        await delay(pause)
      }
    }
  }

  #isTooLate(deadline: number): boolean {
    return performance.now() + this.#options.timeouts.begin > deadline
  }
}

const retries: Readonly<Record<Failure, { readonly most: number; readonly pauseMs: number }>> = {
  conflict: { most: Number.POSITIVE_INFINITY, pauseMs: 20 }, // until the deadline
  race: { most: 10, pauseMs: 4 },
  lost: { most: 2, pauseMs: 0 },
  overloaded: { most: 1, pauseMs: 0 },
  defect: { most: 1, pauseMs: 0 },
}

/** PostgreSQL writes a row lock to its log, like a change. This one is in nobody's way: no verb changes the name. */
function* lockSomething(): Steps<void> {
  yield sql`select name from counters where name = 'users' for key share`
}

/**
 * A row lock needs no room on the disk with the tables: it changes a page, and the log has files in store. So this fills
 * a temporary file of a MiB beside the tables, which is gone at the end.
 */
function* takeRoom(): Steps<void> {
  yield sql`select set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true)`
  yield sql`with room as materialized (select repeat('x', 8192) from generate_series(1, 128)) select count(*) from room`
  yield* lockSomething()
}
