import { join } from 'node:path'
import type { Order, Outcome, Run } from './load-process.ts'
import { Worker } from './worker.ts'

/** The process that sends the requests. */
export class Generator implements AsyncDisposable {
  readonly #worker = new Worker<Order>(join(import.meta.dirname, 'load-process.ts'))
  /** The lists of requests that the process has. */
  readonly #lists = new WeakMap<readonly string[], number>()
  #lastList = 0

  connect(port: number, connections: number): Promise<void> {
    return this.#worker.do({ do: 'connect', port, connections })
  }

  run({ requests, ...run }: Omit<Run, 'list'> & { readonly requests: readonly string[] }): Promise<Outcome> {
    const known = this.#lists.get(requests)
    if (known !== undefined) return this.#worker.do({ do: 'run', list: known, ...run })
    const list = ++this.#lastList
    if (!run.once) this.#lists.set(requests, list)
    return this.#worker.do({ do: 'run', list, requests, ...run })
  }

  disconnect(): Promise<void> {
    return this.#worker.do({ do: 'disconnect' })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#worker[Symbol.asyncDispose]()
  }
}
