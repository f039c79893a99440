import type { Client } from 'pg'
import { fault } from '../../core/errors.ts'
import { LruCache } from '../../core/lru-cache.ts'
import { bounds } from '../bounds.ts'
import { type Row, type Statement, sql } from '../sql.ts'
import type { Timeouts } from '../timeouts.ts'
import type { Verb } from '../verb.ts'
import { failureOf } from './errors.ts'
import { type Answer, Exchange, type Prepared, type Request } from './exchange.ts'

/** The id of a row in `commit_marks`, and the number of the last transaction that was begun with it. */
export interface CommitSlot {
  readonly id: string
  attempt: number
}

/** A connection with its prepared statements, and with the commit mark that shows whether its last commit happened. */
export class PostgresSession {
  readonly client: Client
  readonly slot: CommitSlot
  readonly #timeouts: Timeouts
  readonly #pooler: boolean
  /** The connection must not be used again. */
  broken = false
  readonly #statements = new LruCache<string, Prepared>(bounds.statements, {
    dropped: known => this.#forget(known),
    weights: { of: ({ text }) => text.length, most: bounds.statementText.postgres },
  })
  /** Statements that the next exchange makes PostgreSQL forget. */
  #forgotten: string[] = []
  #names = 0
  /** Statements that travel with the next one whose rows are read. */
  #queued: Request[] = []
  /** Answers to statements that were sent because they were expected to be next, in their order. */
  #ahead: { readonly statement: Statement; readonly rows: readonly Row[] }[] = []
  /** Whether `begin` and the commit mark are still queued. */
  #isBeginning = false

  /** Behind a pooler, no statement is prepared under a name: the next one may run on another connection. */
  constructor(client: Client, slot: CommitSlot, timeouts: Timeouts, pooler: boolean) {
    this.client = client
    this.slot = slot
    this.#timeouts = timeouts
    this.#pooler = pooler
  }

  /** Begins a transaction and writes its commit mark, together with the first statement. */
  begin(isolation: Verb['isolation'], deadline: number): void {
    const attempt = ++this.slot.attempt
    this.#isBeginning = true
    this.#queue(isolation === 'serializable' ? beginSerializable : begin)
    // Slightly less than the remaining time, so that PostgreSQL gives up before we do and the connection stays usable.
    const left = Math.max(1, Math.round(deadline - performance.now() - 50))
    if (this.#pooler) this.#queue(setAll(left, lockTimeout(this.#timeouts), idleTimeout(this.#timeouts)))
    else if (left < statementTimeout(this.#timeouts)) this.#queue(setStatementTimeout(left))
    this.#queue(mark(this.slot.id, attempt))
    if (attempt === 1) this.#queue(forgetOldMarks)
  }

  /**
   * Has its own timeout, because it is unknown whether a commit that is cut off has happened. It is never sent together
   * with its own commit mark: a later search for the mark must find it, or a transaction that holds it locked.
   */
  async commit(): Promise<void> {
    const deadline = performance.now() + this.#timeouts.commit
    if (this.#isBeginning) await this.#exchange(deadline)
    this.#queue(commit)
    const command = (await this.#exchange(deadline)).at(-1)?.command
    if (command !== 'COMMIT') throw fault(new Error(`COMMIT was answered with ${command}`))
  }

  /** Never throws: the caller has the original error to report. */
  async rollback(): Promise<void> {
    const isBegun = !this.#isBeginning
    this.#queued = []
    this.#ahead = []
    this.#isBeginning = false
    if (this.broken || !isBegun) return
    this.#queue(rollback)
    await this.#exchange(performance.now() + this.#timeouts.commit).catch(() => {
      this.broken = true
    })
  }

  /**
   * Runs a statement, and those that were queued before it. If its rows are not read, it is only queued. The statements
   * that are expected to be next are sent with it.
   */
  async run(statement: Statement, deadline: number): Promise<readonly Row[]> {
    const first = this.#ahead.shift()
    if (first?.statement === statement) return first.rows
    this.#ahead = []
    this.#queue(statement)
    if (statement.unread) return []
    let sent = 1
    for (let { next } = statement; next !== undefined; { next } = next) {
      this.#queue(next)
      sent++
    }
    const [answer, ...ahead] = (await this.#exchange(deadline)).slice(-sent)
    let { next } = statement
    for (const { rows } of ahead) {
      if (next === undefined) break
      this.#ahead.push({ statement: next, rows })
      next = next.next
    }
    return answer?.rows ?? []
  }

  #queue({ text, values }: Statement): void {
    this.#queued.push({ statement: this.#prepared(text), values })
  }

  #exchange(deadline: number): Promise<readonly Answer[]> {
    const requests = this.#queued
    const forgotten = this.#forgotten
    this.#queued = []
    this.#forgotten = []
    this.#isBeginning = false
    const { promise, resolve, reject } = Promise.withResolvers<readonly Answer[]>()
    const fail = (error: unknown) => {
      clearTimeout(timer)
      // Whether PostgreSQL has kept a statement that it did not execute is unknown.
      for (const { statement } of requests) if (statement.columns === undefined) this.#forget(statement)
      if (failureOf(error) === 'lost') this.broken = true
      reject(error)
    }
    const timer = setTimeout(
      () => fail(new Error('PostgreSQL did not answer in time')),
      Math.max(1, deadline - performance.now()),
    )
    const done = (error: unknown, answers: readonly Answer[]) => {
      if (error === undefined) {
        clearTimeout(timer)
        resolve(answers)
      } else fail(error)
    }
    this.client.query(new Exchange(requests, forgotten, done))
    return promise
  }

  /**
   * A statement is prepared under a name only from its second use on, because most ad-hoc queries of clients occur once.
   */
  #prepared(text: string): Prepared {
    if (this.#pooler) return { text, name: undefined, columns: undefined }
    const known = this.#statements.get(text)
    if (known === undefined) {
      const first: Prepared = { text, name: undefined, columns: undefined }
      this.#statements.set(text, first)
      return { ...first }
    }
    // The first word makes the name readable, also on the wire.
    known.name ??= `duet_${++this.#names}_${/\w*/.exec(text)?.[0]}`
    return known
  }

  #forget(statement: Prepared): void {
    if (statement.name !== undefined) this.#forgotten.push(statement.name)
    statement.name = undefined
    statement.columns = undefined
  }
}

/** Random: if two transactions wait for each other, one of them gives up first. */
export function lockTimeout({ lock }: Timeouts): number {
  return Math.round(lock * (0.3 + Math.random()))
}

/** Less than an operation has, so that PostgreSQL gives up before we do and the connection stays usable. */
export function statementTimeout({ operation }: Timeouts): number {
  return Math.max(Math.round(operation / 2), operation - 100)
}

/** PostgreSQL ends a transaction whose client has vanished. Its locks would hold back writes and events. */
export function idleTimeout({ operation }: Timeouts): number {
  return operation * 2
}

/**
 * Names the isolation level, because the database may have another default. At a higher level, a transaction that has
 * waited for a row or key of another one fails, instead of going on with what the other one wrote.
 */
export const begin = sql`begin isolation level read committed`
const beginSerializable = sql`begin isolation level serializable`
const commit = sql`commit`
const rollback = sql`rollback`

const setStatementTimeout = (left: number) => sql`select set_config('statement_timeout', ${String(left)}, true)`

function setAll(left: number, lock: number, idle: number): Statement {
  return sql`select set_config('statement_timeout', ${String(left)}, true), set_config('lock_timeout', ${String(lock)}, true),
             set_config('idle_in_transaction_session_timeout', ${String(idle)}, true)`
}

function mark(slot: string, attempt: number): Statement {
  return sql`insert into commit_marks (slot, attempt, marked_at) values (${slot}, ${attempt}, now())
             on conflict (slot) do update set attempt = excluded.attempt, marked_at = excluded.marked_at`
}

/**
 * A broken connection leaves its row in `commit_marks` behind, so each new connection deletes some old rows. Nobody
 * needs them: a commit in doubt is resolved within seconds. Locked rows are skipped.
 */
const forgetOldMarks = sql`delete from commit_marks where slot in (
  select slot from commit_marks where marked_at < now() - interval '1 day' limit 100 for update skip locked)`
