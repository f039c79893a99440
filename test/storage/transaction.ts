import assert from 'node:assert/strict'
import pg from 'pg'
import { columnOf } from '../../src/storage/postgres/exchange.ts'
import type { Row } from '../../src/storage/sql.ts'
import type { Steps } from '../../src/storage/verb.ts'

/** A verb on PostgreSQL that runs one statement at a time, without the timeouts of the engine. */
export class Transaction<Outcome> {
  readonly #client: pg.Client
  readonly #steps: Steps<Outcome>
  #rows: readonly Row[] = []

  static async begin<Outcome>(client: pg.Client, steps: Steps<Outcome>): Promise<Transaction<Outcome>> {
    await client.query('begin')
    return new Transaction(client, steps)
  }

  /** Runs all of it. */
  static async run<Outcome>(client: pg.Client, steps: Steps<Outcome>): Promise<Outcome> {
    const transaction = await Transaction.begin(client, steps)
    const outcome = await transaction.finish()
    await client.query('commit')
    return outcome
  }

  private constructor(client: pg.Client, steps: Steps<Outcome>) {
    this.#client = client
    this.#steps = steps
  }

  /** Runs up to this many further statements. Returns the outcome after the last one. */
  async advance(statements: number): Promise<{ readonly outcome: Outcome } | undefined> {
    try {
      for (let left = statements; left > 0; left--) {
        const { done, value } = this.#steps.next(this.#rows)
        if (done) return { outcome: value }
        const { rows } = await this.#client.query({ text: value.text, values: [...value.values], rowMode: 'array' })
        this.#rows = rows
      }
      return undefined
    } catch (error) {
      await this.#client.query('rollback')
      throw error
    }
  }

  async finish(): Promise<Outcome> {
    const end = await this.advance(Number.POSITIVE_INFINITY)
    return end === undefined ? assert.fail() : end.outcome
  }
}

export async function connectTo(location: string, settings = {}): Promise<pg.Client & AsyncDisposable> {
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  const types = { getTypeParser: columnOf }
  const client = new pg.Client({ connectionString: location, options: options.join(' '), types })
  await client.connect()
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() })
}

/** Whether a connection waits for a lock, as another one sees it. */
export async function isWaiting(client: pg.Client, other: pg.Client): Promise<boolean> {
  const pid = (client as unknown as { processID: number }).processID
  const waiting = "select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'"
  return (await other.query(waiting, [pid])).rowCount === 1
}
