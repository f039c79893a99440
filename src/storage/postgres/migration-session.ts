import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Row, Statement } from '../sql.ts'
import { failureOf } from './errors.ts'
import { columnOf } from './exchange.ts'
import { begin } from './transact.ts'

/** A connection that changes the schema beside a running service. */
export class MigrationSession implements AsyncDisposable {
  readonly #client: pg.Client

  static async open(url: string): Promise<MigrationSession> {
    const types = { getTypeParser: columnOf }
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000, types })
    const session = new MigrationSession(client)
    await client.connect()
    return session
  }

  private constructor(client: pg.Client) {
    this.#client = client
    client.on('error', () => {}) // the query that runs, or the next one, fails
  }

  async query({ text, values }: Statement): Promise<readonly Row[]> {
    return (await this.#client.query({ text, values: [...values], rowMode: 'array' })).rows
  }

  async script(text: string): Promise<void> {
    await this.#client.query(text)
  }

  /**
   * Runs a transaction as soon as all its locks are free. While it waits for one, all who come later wait behind it. So it
   * waits a moment, lets them pass, and tries again. Reports the first wait and then one every ten seconds.
   */
  async transactWhenFree<Outcome>(report: () => void, work: () => Promise<Outcome>): Promise<Outcome> {
    for (let reported = Number.NEGATIVE_INFINITY; ; ) {
      try {
        await this.script(`${begin.text}; set local lock_timeout = '200ms'; set local statement_timeout = 0`)
        const outcome = await work()
        await this.script('commit')
        return outcome
      } catch (error) {
        await this.script('rollback').catch(() => {})
        if (failureOf(error) !== 'conflict') throw error
      }
      if (performance.now() - reported > 10_000) {
        report()
        reported = performance.now()
      }
      await delay(500 + Math.random() * 500)
    }
  }

  /**
   * Runs each statement outside of a transaction. They wait for older transactions for as long as these run, and nobody
   * waits for them. An index that is only half built, because the last try was interrupted, is built again.
   */
  async runAlone(statements: string): Promise<void> {
    await this.script('set lock_timeout = 0; set statement_timeout = 0')
    for (const statement of statements.split(/;\n/).filter(each => each.trim() !== '')) {
      const [, index] = /create (?:unique )?index concurrently (\w+)/.exec(statement) ?? []
      if (index !== undefined) await this.script(`drop index concurrently if exists ${index}`)
      await this.script(statement)
    }
    await this.script('reset lock_timeout; reset statement_timeout')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end()
  }
}
