import type { Client } from 'pg'
import { waited } from '../../lib/waits.ts'
import { whenLate } from '../../lib/within.ts'
import { bounds } from '../bounds.ts'
import type { Row, Statement } from '../sql.ts'
import { failureOf } from './errors.ts'
import { Exchange, type Prepared } from './exchange.ts'

/** A connection with its prepared statements. */
export class PostgresSession {
  readonly #client: Client
  readonly #mayPrepare: boolean
  readonly #statements = new Map<string, Prepared>()
  #names = 0
  #textLength = 0
  /** The connection must not be used again. */
  broken = false

  /** Behind a pooler, no statement is prepared under a name: the next one may run on another connection. */
  constructor(client: Client, mayPrepare: boolean) {
    this.#client = client
    this.#mayPrepare = mayPrepare
  }

  /** PostgreSQL keeps so much for this connection that a new one should take its place. */
  get isFull(): boolean {
    return this.#statements.size >= bounds.statements || this.#textLength >= bounds.statementText.postgres
  }

  end(): void {
    this.#client.end(() => {})
  }

  /** Runs the statements in one round trip, and returns the rows of each. */
  async send(
    statements: readonly Statement[],
    deadline: number,
    kind: 'statement' | 'commit' = 'statement',
  ): Promise<readonly (readonly Row[])[]> {
    const begun = performance.now()
    const requests = statements.map(({ text, values }) => ({ statement: this.#prepared(text), values }))
    const exchange = new Exchange(requests)
    const late = () => exchange.handleError(new Error('PostgreSQL did not answer in time'))
    const timer = whenLate(Math.max(1, deadline - begun), late)
    try {
      this.#client.query(exchange)
      return await exchange.answers
    } catch (error) {
      // Whether PostgreSQL has kept a statement that it did not execute is unknown.
      for (const { statement } of requests) if (statement.columns === undefined) statement.name = undefined
      if (failureOf(error) === 'lost') this.broken = true
      throw error
    } finally {
      clearTimeout(timer)
      waited(kind, begun, undefined, statements)
    }
  }

  /**
   * A statement is prepared under a name only from its second use on, because most ad-hoc queries of clients occur once.
   */
  #prepared(text: string): Prepared {
    const known = this.#statements.get(text)
    if (known === undefined) {
      const first: Prepared = { text, name: undefined, columns: undefined }
      if (this.#mayPrepare) {
        this.#statements.set(text, first)
        this.#textLength += text.length
      }
      return { ...first }
    }
    // The first word makes the name readable, also on the wire.
    known.name ??= `duet_${++this.#names}_${/\w*/.exec(text)?.[0]}`
    return known
  }
}
