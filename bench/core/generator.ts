import { join } from 'node:path'
import type { Order, Outcome, Run } from './load-process.ts'
import { Worker } from './worker.ts'

/** The process that sends the requests. */
export class Generator implements AsyncDisposable {
  readonly #worker = new Worker<Order>(join(import.meta.dirname, 'load-process.ts'))

  connect(port: number, connections: number): Promise<void> {
    return this.#worker.do({ do: 'connect', port, connections })
  }

  run(run: Run): Promise<Outcome> {
    return this.#worker.do({ do: 'run', ...run })
  }

  disconnect(): Promise<void> {
    return this.#worker.do({ do: 'disconnect' })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#worker[Symbol.asyncDispose]()
  }
}
