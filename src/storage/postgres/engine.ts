import { setTimeout as delay } from 'node:timers/promises'
import { AppError, fault, unavailable } from '../../core/errors.ts'
import { FairQueue } from '../../core/fair-queue.ts'
import { KeyedQueue } from '../../core/keyed-queue.ts'
import type { Randomness, StoreObserver } from '../../core/ports.ts'
import { bounds } from '../bounds.ts'
import { answerOf, type Engine, type EngineOptions } from '../engine.ts'
import { postgresDialect } from '../select/dialect.ts'
import { type Row, type Statement, sql } from '../sql.ts'
import type { Timeouts } from '../timeouts.ts'
import type { ArgsOf, Catalogue, OutcomeOf, Steps, Traits, Verb, Verbs } from '../verb.ts'
import { type Failure, failureOf, postgresError } from './errors.ts'
import { PostgresPool } from './pool.ts'
import type { PostgresSession } from './session.ts'
import { CommitInDoubt, transact } from './transact.ts'

export interface PostgresOptions<V extends Verbs> extends EngineOptions<V> {
  readonly url: string
  readonly poolMax: number
  /** Whether each transaction may run on another connection of a pooler between us and PostgreSQL. */
  readonly pooler: boolean
  readonly randomness: Randomness
}

/** The shared engine: any number of instances use one PostgreSQL, whose clock gives the time. */
export class PostgresEngine<V extends Verbs> implements Engine<V> {
  readonly dialect = postgresDialect
  readonly #pool: PostgresPool
  readonly #catalogue: Catalogue<V>
  readonly #observer: StoreObserver
  readonly #timeouts: Timeouts
  /** Limits the writes that run at once, so that connections stay free for reads. */
  readonly #writers: FairQueue
  /**
   * Of the writes that lock the same row, one runs and one of another caller waits in PostgreSQL. The others wait here,
   * so that they take no connection from writes of other rows.
   */
  readonly #locked = new KeyedQueue(2)

  constructor(options: PostgresOptions<V>) {
    this.#pool = new PostgresPool(options)
    this.#catalogue = options.catalogue
    this.#observer = options.observer
    this.#timeouts = options.timeouts
    const { poolMax } = options
    this.#writers = new FairQueue({ atOnce: Math.max(1, poolMax - Math.ceil(poolMax / 5)), mayWait: bounds.waiting })
  }

  async read(statement: Statement): Promise<readonly Row[]> {
    const started = performance.now()
    const deadline = started + this.#timeouts.operation
    try {
      return await this.#withRetries(deadline, () =>
        this.#pool.use(deadline, session => session.run(statement, deadline)),
      )
    } finally {
      this.#observer.read((performance.now() - started) / 1000)
    }
  }

  async readText(statement: Statement): Promise<string> {
    return answerOf(await this.read(statement))
  }

  async write<Name extends keyof V & string>(name: Name, ...args: ArgsOf<V[Name]>): Promise<OutcomeOf<V[Name]>> {
    const verb: Verb | undefined = this.#catalogue.verbs[name]
    if (verb === undefined) throw fault(new Error(`No verb is called ${name}`))
    const started = performance.now()
    const deadline = started + this.#timeouts.operation
    try {
      const given = args as unknown as readonly never[]
      const traits = this.#catalogue.traits?.[name] as Traits | undefined
      const caller = traits?.caller?.(...given) ?? ''
      const steps = () => verb(...given)
      const write = () => this.#withRetries(deadline, () => this.#transact(verb.isolation, steps, deadline))
      const queued = () => this.#writers.run(caller, write, Math.max(0, deadline - performance.now()))
      const outcome = await this.#locked.run(traits?.locks?.(...given) ?? [], caller, queued, deadline)
      this.#observer.commit(1)
      return outcome as OutcomeOf<V[Name]>
    } finally {
      this.#observer.write((performance.now() - started) / 1000)
    }
  }

  /**
   * Commits a transaction that writes its commit mark. So a standby, a full disk and a replica that does not confirm
   * make the database unavailable. It does not wait for its turn among the writes: a busy database is available.
   */
  async ping(): Promise<void> {
    const deadline = performance.now() + this.#timeouts.operation
    await this.#withRetries(deadline, () => this.#transact(undefined, nothing, deadline))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool[Symbol.asyncDispose]()
  }

  async #transact(isolation: Verb['isolation'], steps: () => Steps<unknown>, deadline: number): Promise<unknown> {
    // A transaction that begins too late would be cut off in the middle, and its connection would be lost too.
    const begun = (session: PostgresSession) => {
      if (this.#isTooLate(deadline)) throw unavailable(new Error('Too late to begin'))
      return transact(session, isolation, steps, deadline)
    }
    const outcome = await this.#pool.use(deadline, begun)
    if (!(outcome instanceof CommitInDoubt)) return outcome
    // Ask only here, after the broken connection has been released, because asking needs a connection too.
    const askUntil = Math.min(performance.now(), deadline) + this.#timeouts.doubt
    if (await this.#wasCommitted(outcome, askUntil)) return outcome.outcome
    throw outcome.cause
  }

  /**
   * Finds out whether a COMMIT whose answer was lost has happened. It writes the slot's row, because the write waits
   * until the transaction in doubt has ended; so the result is final. A read would not wait if that transaction inserts
   * the row. If PostgreSQL does not answer in time, the caller gets a 503 and can find out by reading what it wrote.
   */
  async #wasCommitted({ slot, attempt }: CommitInDoubt, deadline: number): Promise<boolean> {
    for (;;) {
      try {
        const [mark] = await this.#pool.use(deadline, session => session.run(touchMark(slot), deadline))
        return mark?.[0] === attempt
      } catch (error) {
        if (performance.now() + 50 > deadline) throw unavailable(new Error('A commit is in doubt', { cause: error }))
        await delay(50)
      }
    }
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
        const { most, pauseMs } = retries[failureOf(error)]
        if (tries >= most) throw postgresError(error)
        const pause = Math.random() * pauseMs * Math.min(tries, 10)
        if (this.#isTooLate(deadline - pause)) throw unavailable(error)
        await delay(pause)
      }
    }
  }

  #isTooLate(deadline: number): boolean {
    return performance.now() + this.#timeouts.begin > deadline
  }
}

const retries: Readonly<Record<Failure, { readonly most: number; readonly pauseMs: number }>> = {
  conflict: { most: Number.POSITIVE_INFINITY, pauseMs: 20 }, // until the deadline
  race: { most: 10, pauseMs: 4 },
  lost: { most: 2, pauseMs: 0 },
  overloaded: { most: 1, pauseMs: 0 },
  defect: { most: 1, pauseMs: 0 },
}

function* nothing(): Steps<void> {}

function touchMark(slot: string): Statement {
  return sql`insert into commit_marks (slot, attempt, marked_at) values (${slot}, 0, now())
             on conflict (slot) do update set marked_at = excluded.marked_at returning attempt`
}
