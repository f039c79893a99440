import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { AppError, fault, unavailable } from '../core/errors.ts'
import type { Randomness, StoreObserver } from '../core/ports.ts'
import { bounds, type Engine, type EngineOptions } from './engine.ts'
import { type Migration, migrate } from './migrate.ts'
import { type Failure, failureOf, postgresError } from './postgres-errors.ts'
import { type CommitSlot, PostgresSession } from './postgres-session.ts'
import { type Row, type Statement, sql } from './sql.ts'
import { type ArgsOf, type Catalogue, type OutcomeOf, RunAgain, type Steps, type Verb, type Verbs } from './verb.ts'

export interface PostgresOptions<V extends Verbs> extends EngineOptions<V> {
  readonly url: string
  readonly poolMax: number
  readonly randomness: Randomness
}

/** The shared engine: any number of instances over one PostgreSQL. Its clock, not ours, decides. */
export class PostgresEngine<V extends Verbs> implements Engine<V> {
  readonly #pool: pg.Pool
  readonly #catalogue: Catalogue<V>
  readonly #observer: StoreObserver
  readonly #randomness: Randomness
  readonly #sessions = new WeakMap<pg.PoolClient, PostgresSession>()
  /** Slots of connections that are gone, so that an instance leaves few rows in `commit_marks`. */
  readonly #freeSlots: CommitSlot[] = []

  constructor({ url, poolMax, catalogue, observer, randomness }: PostgresOptions<V>) {
    this.#catalogue = catalogue
    this.#observer = observer
    this.#randomness = randomness
    this.#pool = new pg.Pool({
      connectionString: url,
      max: poolMax,
      application_name: 'duet',
      connectionTimeoutMillis: bounds.patience / 2,
      idleTimeoutMillis: 60_000,
      keepAlive: true,
      statement_timeout: bounds.patience,
      lock_timeout: bounds.lockWait,
      idle_in_transaction_session_timeout: bounds.patience * 2,
      // Compiling a plan costs more than any of our statements.
      options: '-c jit=off',
      types: { getTypeParser },
    })
    // A connection lost while idle, or between two of a verb's statements, must not end the process.
    this.#pool.on('error', error => observer.trouble('An idle database connection was lost', postgresError(error)))
    this.#pool.on('connect', client => client.on('error', () => {}))
    this.#pool.on('remove', client => this.#recycleSlot(client))
  }

  async read(statement: Statement): Promise<readonly Row[]> {
    const started = performance.now()
    try {
      return await this.#withRetries(started, session => session.run(statement, started + bounds.patience))
    } finally {
      this.#observer.read((performance.now() - started) / 1000)
    }
  }

  async readText({ text, values }: Statement): Promise<string | null> {
    const bounded = `select case when octet_length(answer) <= ${bounds.answerBytes} then answer end, answer is null
                     from (select (${text})::text as answer) as whole`
    const [row] = await this.read({ text: bounded, values })
    const [answer, absent] = row ?? [null, 't']
    if (answer === null && absent === 'f') throw new AppError('answer-too-large', 'The answer is too large.')
    return answer === null || answer === undefined ? null : String(answer)
  }

  async write<Name extends keyof V & string>(name: Name, ...args: ArgsOf<V[Name]>): Promise<OutcomeOf<V[Name]>> {
    const verb: Verb | undefined = this.#catalogue.verbs[name]
    if (verb === undefined) throw fault(new Error(`No verb is called ${name}`))
    const started = performance.now()
    try {
      const steps = () => verb(...(args as unknown as readonly never[]))
      const outcome = await this.#withRetries(started, session =>
        this.#transact(session, verb.isolation, steps, started + bounds.patience),
      )
      this.#observer.commit(1)
      return outcome as OutcomeOf<V[Name]>
    } finally {
      this.#observer.write((performance.now() - started) / 1000)
    }
  }

  async ping(): Promise<void> {
    await this.read(sql`select 1`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end()
  }

  /**
   * Runs work that leaves no trace when it fails, again where that can help: at once after a lost connection (the pool
   * may have held dead ones since a restart), after a random pause when transactions were in each other's way.
   */
  async #withRetries<Outcome>(started: number, work: (session: PostgresSession) => Promise<Outcome>): Promise<Outcome> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#withSession(work)
      } catch (error) {
        if (error instanceof AppError) throw error
        const failure = failureOf(error)
        const pause = failure === 'conflict' ? Math.random() * 20 * tries : 0
        if (tries >= mostTries[failure] || performance.now() + pause > started + bounds.patience)
          throw postgresError(error)
        await delay(pause)
      }
    }
  }

  async #withSession<Outcome>(work: (session: PostgresSession) => Promise<Outcome>): Promise<Outcome> {
    if (this.#pool.waitingCount >= bounds.waiting) throw unavailable(new Error('Too many operations wait'))
    const client = await this.#pool.connect()
    const session = this.#sessionOf(client)
    try {
      return await work(session)
    } finally {
      client.release(session.broken)
    }
  }

  #sessionOf(client: pg.PoolClient): PostgresSession {
    let session = this.#sessions.get(client)
    if (session === undefined) {
      session = new PostgresSession(client, this.#freeSlots.pop() ?? { id: this.#randomness.id(), attempt: 0 })
      this.#sessions.set(client, session)
    }
    return session
  }

  #recycleSlot(client: pg.PoolClient): void {
    const session = this.#sessions.get(client)
    if (session !== undefined && !session.inDoubt) this.#freeSlots.push(session.slot)
  }

  async #transact(
    session: PostgresSession,
    isolation: Verb['isolation'],
    verb: () => Steps<unknown>,
    deadline: number,
  ): Promise<unknown> {
    await session.begin(isolation, deadline)
    let outcome: unknown
    try {
      outcome = await drive(guarded(verb()), statement => session.run(statement, deadline))
    } catch (error) {
      await session.rollback(deadline)
      throw error
    }
    const attempt = session.slot.attempt
    try {
      await session.commit(deadline)
    } catch (error) {
      if (error instanceof AppError || failureOf(error) !== 'lost') throw error
      session.inDoubt = true
      if (!(await this.#wasCommitted(session.slot.id, attempt, deadline + bounds.doubt))) throw error
    }
    return outcome
  }

  /**
   * Settles a COMMIT whose answer was lost. Writing the slot's row waits for the transaction in doubt to end, if it is
   * still there (reading it would not, where that transaction inserts the row), so that the answer is final either way.
   * When PostgreSQL cannot be asked in time, the caller is told 503 and can find out by asking for what it wrote.
   */
  async #wasCommitted(slot: string, attempt: number, deadline: number): Promise<boolean> {
    for (;;) {
      try {
        const [mark] = await this.#withSession(session => session.run(touchMark(slot), deadline))
        return mark?.[0] === attempt
      } catch (error) {
        if (performance.now() + 50 > deadline) throw unavailable(new Error('A commit is in doubt', { cause: error }))
        await delay(50)
      }
    }
  }
}

const mostTries: Readonly<Record<Failure, number>> = { conflict: 10, race: 3, lost: 2, overloaded: 1, defect: 1 }

function touchMark(slot: string): Statement {
  return sql`insert into commit_marks (slot, attempt, marked_at) values (${slot}, 0, now())
             on conflict (slot) do update set marked_at = excluded.marked_at returning attempt`
}

async function drive<Step, Outcome>(
  steps: Generator<Step, Outcome, readonly Row[]>,
  run: (step: Step) => Promise<readonly Row[]>,
): Promise<Outcome> {
  for (let rows: readonly Row[] = []; ; ) {
    const step = steps.next(rows)
    if (step.done) return step.value
    rows = await run(step.value)
  }
}

// What a verb itself throws is our defect, and must not pass for a lost connection.
function* guarded<Outcome>(steps: Steps<Outcome>): Steps<Outcome> {
  try {
    return yield* steps
  } catch (error) {
    throw error instanceof AppError || error instanceof RunAgain ? error : fault(error)
  }
}

/** Brings the schema up to date. Instances that start together wait for their turn. */
export async function migratePostgres(url: string, migrations: readonly Migration[]): Promise<readonly Migration[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000, types: { getTypeParser } })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query("begin; set local lock_timeout = '60s'")
    await client.query(`select pg_advisory_xact_lock(${migrationLock})`)
    const applied = await drive(migrate(migrations), async step => {
      if ('script' in step) await client.query(step.script)
      else return (await client.query({ text: step.text, values: [...step.values], rowMode: 'array' })).rows
      return []
    })
    await client.query("delete from commit_marks where marked_at < now() - interval '1 day'")
    await client.query('commit')
    return applied
  } finally {
    await client.end() // before a commit: rolls back
  }
}

// Any number will do, as long as every version of the program uses the same.
const migrationLock = 4_041_980

// Integers are numbers (the schema keeps them below 2^53); everything else stays the text PostgreSQL sent, JSON included.
function getTypeParser(oid: number): (text: string) => string | number {
  return integerTypes.has(oid) ? Number : text => text
}

const integerTypes = new Set([20, 21, 23])
