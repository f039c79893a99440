import type { MessagePort } from 'node:worker_threads'
import type { Engine, EngineOptions } from '../engine.ts'
import { sqliteDialect } from '../select/dialect.ts'
import type { Row, Statement } from '../sql.ts'
import type { ArgsOf, OutcomeOf, Verbs } from '../verb.ts'
import { SqliteConnection } from './connection.ts'
import { pingVerb } from './group-commit.ts'
import { SqliteReader } from './reader.ts'
import { SqliteWriter } from './writer.ts'
import { WriterWorker } from './writer-worker.ts'

/** What the threads of one process share of a file. The main thread has it. */
export interface SharedSqlite {
  /** How many threads read. Together they keep as many pages in memory as one would. */
  readonly threads: number
  /** Passes a port on to the writer thread. */
  readonly connect: (port: MessagePort) => void
}

/** The embedded engine: a read connection in this thread and a write connection in a worker thread. */
export class SqliteEngine<V extends Verbs> implements Engine<V> {
  readonly dialect = sqliteDialect
  readonly path: string
  readonly #reader: SqliteReader
  readonly #writer: SqliteWriter
  readonly #worker: WriterWorker | undefined

  /** With `shared`, other threads of this process have engines on the same file, and one writer thread serves all. */
  constructor(path: string, { catalogue, clock, observer, timeouts }: EngineOptions<V>, shared?: SharedSqlite) {
    this.path = path
    const now = () => clock.now()
    const busyMs = timeouts.operation
    const reading = new SqliteConnection(path, 'read', busyMs, shared?.threads)
    const worker = shared ?? new WriterWorker({ path, catalogueUrl: catalogue.url, busyMs }, observer.trouble)
    this.#worker = worker instanceof WriterWorker ? worker : undefined
    this.#writer = new SqliteWriter({ connect: port => worker.connect(port), now, observer, timeouts })
    this.#reader = new SqliteReader(reading, this.#writer, now, observer)
  }

  read(statement: Statement): Promise<readonly Row[]> {
    return this.#reader.read(statement)
  }

  write<Name extends keyof V & string>(name: Name, ...args: ArgsOf<V[Name]>): Promise<OutcomeOf<V[Name]>> {
    return this.#writer.submit(name, args) as Promise<OutcomeOf<V[Name]>>
  }

  async ping(): Promise<void> {
    await this.read({ text: 'select 1', values: [] })
    await this.#writer.submit(pingVerb, [])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Close the writer last: the last connection to close removes the WAL file, and a reader cannot do that.
    this.#reader[Symbol.dispose]()
    await this.#writer[Symbol.asyncDispose]()
    await this.#worker?.[Symbol.asyncDispose]()
  }
}
