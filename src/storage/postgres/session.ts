import type { PoolClient, QueryArrayConfig, QueryConfig, QueryResult } from 'pg'
import { fault } from '../../core/errors.ts'
import { Recent } from '../../core/recent.ts'
import { bounds } from '../engine.ts'
import type { Row, Statement } from '../sql.ts'
import type { Timeouts } from '../timeouts.ts'
import type { Verb } from '../verb.ts'
import { failureOf } from './errors.ts'

/** A row of `commit_marks` and the number of the latest transaction that was begun under it. */
export interface CommitSlot {
  readonly id: string
  attempt: number
}

/** A connection, with the statements prepared on it and the mark that tells whether its last commit happened. */
export class PostgresSession {
  readonly #client: PoolClient
  readonly slot: CommitSlot
  readonly #timeouts: Timeouts
  /** The connection must not be used again. */
  broken = false
  readonly #statements = new Recent<string, Prepared>(bounds.statements, {
    dropped: ({ name }) => {
      if (name !== undefined) this.#stale.push(name)
    },
    weights: { of: ({ length }) => length, most: bounds.statementText.postgres },
  })
  #stale: string[] = []
  #names = 0

  constructor(client: PoolClient, slot: CommitSlot, timeouts: Timeouts) {
    this.#client = client
    this.slot = slot
    this.#timeouts = timeouts
  }

  /**
   * Begins a transaction and marks it, in one round trip. How long it waits for a lock is left to chance, so that of two
   * that wait for each other one gives way first.
   */
  async begin(isolation: Verb['isolation'], deadline: number): Promise<void> {
    const attempt = ++this.slot.attempt
    const lockWait = Math.round(this.#timeouts.lock * (0.3 + Math.random()))
    // A little less than what is left: PostgreSQL gives up first, and the connection survives.
    const left = Math.max(1, Math.round(deadline - performance.now() - 50))
    await this.#ask(
      `begin${isolation === 'serializable' ? ' isolation level serializable' : ''};
       set local lock_timeout = ${lockWait}; set local statement_timeout = ${left};
       insert into commit_marks (slot, attempt, marked_at) values ('${this.slot.id}', ${attempt}, now())
       on conflict (slot) do update set attempt = excluded.attempt, marked_at = excluded.marked_at
       ${attempt === 1 ? forgetOldMarks : ''}`,
      deadline,
    )
  }

  /** Has a time of its own: to be cut off here is to be in doubt. */
  async commit(): Promise<void> {
    const command = await this.#ask('commit', performance.now() + this.#timeouts.commit)
    if (command !== 'COMMIT') throw fault(new Error(`COMMIT was answered with ${command}`))
  }

  /** Never throws: whoever rolls back has a better error to tell. */
  async rollback(): Promise<void> {
    if (this.broken) return
    await this.#ask('rollback', performance.now() + this.#timeouts.commit).catch(() => {
      this.broken = true
    })
  }

  /** A statement is prepared under a name from its second use on: most texts of a curious client come once. */
  async run(statement: Statement, deadline: number): Promise<readonly Row[]> {
    const name = this.#nameOf(statement.text)
    if (this.#stale.length > 0) await this.#forgetStale(deadline)
    return this.#query<Row[]>(deadline, async query_timeout => {
      const { rows } = await this.#client.query<Value[]>({
        ...(name !== undefined && { name }),
        text: statement.text,
        values: [...statement.values],
        rowMode: 'array',
        query_timeout,
      } as QueryArrayConfig)
      return rows
    })
  }

  /** Sends statements without values in one round trip; returns the last one's command. */
  #ask(text: string, deadline: number): Promise<string> {
    return this.#query(deadline, async query_timeout => {
      const answer: unknown = await this.#client.query({ text, query_timeout } as QueryConfig)
      const last = Array.isArray(answer) ? answer.at(-1) : answer
      return (last as QueryResult).command
    })
  }

  async #query<Answer>(deadline: number, send: (timeout: number) => Promise<Answer>): Promise<Answer> {
    try {
      return await send(Math.max(1, deadline - performance.now()))
    } catch (error) {
      if (failureOf(error) === 'lost') this.broken = true
      throw error
    }
  }

  #nameOf(text: string): string | undefined {
    const known = this.#statements.get(text)
    if (known === undefined) this.#statements.set(text, { name: undefined, length: text.length })
    else known.name ??= `duet_${++this.#names}`
    return known?.name
  }

  async #forgetStale(deadline: number): Promise<void> {
    // pg keeps its own note of what is prepared, and has no call to forget it.
    const { connection } = this.#client as unknown as { connection: { parsedStatements: Record<string, string> } }
    const names = this.#stale.filter(name => name in connection.parsedStatements)
    this.#stale = []
    for (const name of names) delete connection.parsedStatements[name]
    if (names.length > 0) await this.#ask(names.map(name => `deallocate ${name}`).join('; '), deadline)
  }
}

/**
 * A connection that breaks leaves its mark behind, so each new one removes some old marks. Nobody asks for them any more:
 * a commit in doubt is settled within seconds. Those that somebody holds are left alone.
 */
const forgetOldMarks = `; delete from commit_marks where slot in (
  select slot from commit_marks where marked_at < now() - interval '1 day' limit 100 for update skip locked)`

interface Prepared {
  name: string | undefined
  readonly length: number
}

type Value = Row[number]
