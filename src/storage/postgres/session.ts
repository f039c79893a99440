import type { PoolClient, QueryArrayConfig, QueryConfig, QueryResult } from 'pg'
import { fault } from '../../core/errors.ts'
import { LruCache } from '../../core/lru-cache.ts'
import { bounds } from '../bounds.ts'
import type { Row, Statement } from '../sql.ts'
import type { Timeouts } from '../timeouts.ts'
import type { Verb } from '../verb.ts'
import { failureOf } from './errors.ts'

/** The id of a row in `commit_marks`, and the number of the last transaction that was begun with it. */
export interface CommitSlot {
  readonly id: string
  attempt: number
}

export interface TransactionKind {
  readonly isolation: Verb['isolation']
  readonly events: boolean
}

/** A connection with its prepared statements, and with the commit mark that shows whether its last commit happened. */
export class PostgresSession {
  readonly #client: PoolClient
  readonly slot: CommitSlot
  readonly #timeouts: Timeouts
  readonly #pooler: boolean
  /** The connection must not be used again. */
  broken = false
  readonly #statements = new LruCache<string, Prepared>(bounds.statements, {
    dropped: ({ name }) => {
      if (name !== undefined) this.#stale.push(name)
    },
    weights: { of: ({ length }) => length, most: bounds.statementText.postgres },
  })
  #stale: string[] = []
  #names = 0

  /** Behind a pooler, no statement is prepared under a name: the next one may run on another connection. */
  constructor(client: PoolClient, slot: CommitSlot, timeouts: Timeouts, pooler: boolean) {
    this.#client = client
    this.slot = slot
    this.#timeouts = timeouts
    this.#pooler = pooler
  }

  /**
   * Begins a transaction and writes its commit mark, in one round trip. The lock timeout is random: if two transactions
   * wait for each other, one of them gives up first. A transaction that may write events locks the outbox before its
   * first write, because that write gives it its number; see `entities/outbox.ts`. Such locks do not exclude each other.
   */
  async begin({ isolation, events }: TransactionKind, deadline: number): Promise<void> {
    const attempt = ++this.slot.attempt
    const lockWait = Math.round(this.#timeouts.lock * (0.3 + Math.random()))
    // Slightly less than the remaining time, so that PostgreSQL gives up before we do and the connection stays usable.
    const left = Math.max(1, Math.round(deadline - performance.now() - 50))
    await this.#ask(
      `begin${isolation === 'serializable' ? ' isolation level serializable' : ''};
       set local lock_timeout = ${lockWait}; set local statement_timeout = ${left};
       ${this.#pooler ? `set local idle_in_transaction_session_timeout = ${idleTimeout(this.#timeouts)};` : ''}
       ${events ? 'lock table outbox in row exclusive mode;' : ''}
       insert into commit_marks (slot, attempt, marked_at) values ('${this.slot.id}', ${attempt}, now())
       on conflict (slot) do update set attempt = excluded.attempt, marked_at = excluded.marked_at
       ${attempt === 1 ? forgetOldMarks : ''}`,
      deadline,
    )
  }

  /** Has its own timeout, because it is unknown whether a commit that is cut off has happened. */
  async commit(): Promise<void> {
    const command = await this.#ask('commit', performance.now() + this.#timeouts.commit)
    if (command !== 'COMMIT') throw fault(new Error(`COMMIT was answered with ${command}`))
  }

  /** Never throws: the caller has the original error to report. */
  async rollback(): Promise<void> {
    if (this.broken) return
    await this.#ask('rollback', performance.now() + this.#timeouts.commit).catch(() => {
      this.broken = true
    })
  }

  /**
   * Runs a statement. It is prepared under a name only from its second use on, because most ad-hoc queries of clients
   * occur once.
   */
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

  /** Sends one or more statements without values in one round trip. Returns the command of the last one. */
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
    if (this.#pooler) return undefined
    const known = this.#statements.get(text)
    if (known === undefined) this.#statements.set(text, { name: undefined, length: text.length })
    else known.name ??= `duet_${++this.#names}`
    return known?.name
  }

  async #forgetStale(deadline: number): Promise<void> {
    // pg keeps its own list of prepared statements, and has no function to remove one.
    const { connection } = this.#client as unknown as { connection: { parsedStatements: Record<string, string> } }
    const names = this.#stale.filter(name => name in connection.parsedStatements)
    this.#stale = []
    for (const name of names) delete connection.parsedStatements[name]
    if (names.length > 0) await this.#ask(names.map(name => `deallocate ${name}`).join('; '), deadline)
  }
}

/** PostgreSQL ends a transaction whose client has vanished. Its locks would hold back writes and events. */
export function idleTimeout({ operation }: Timeouts): number {
  return operation * 2
}

/**
 * A broken connection leaves its row in `commit_marks` behind, so each new connection deletes some old rows. Nobody
 * needs them: a commit in doubt is resolved within seconds. Locked rows are skipped.
 */
const forgetOldMarks = `; delete from commit_marks where slot in (
  select slot from commit_marks where marked_at < now() - interval '1 day' limit 100 for update skip locked)`

interface Prepared {
  name: string | undefined
  readonly length: number
}

type Value = Row[number]
