import { MessageChannel, Worker } from 'node:worker_threads'
import { ConfigError } from '../config.ts'
import { fromSent, type SentError } from '../core/sent-error.ts'
import { threadMemory } from '../lib/v8.ts'
import type { ServingData, Started } from './serving-thread.ts'
import { type Handlers, ThreadCalls } from './thread-calls.ts'

export interface ServingParts {
  readonly data: Omit<ServingData, 'port'>
  /** What the thread may ask of the main thread. */
  readonly handlers: Handlers
  readonly onLog: (lines: string) => void
  readonly onError: (error: unknown) => void
}

/** The main thread's side of a thread that serves. */
export class Serving {
  readonly index: number
  /** Rejects if the thread could not start. */
  readonly started: Promise<Started>
  readonly ended: Promise<void>
  readonly #worker: Worker
  readonly #calls: ThreadCalls

  constructor({ data, handlers, onLog, onError }: ServingParts) {
    this.index = data.index
    const { port1, port2 } = new MessageChannel()
    const { promise, resolve, reject } = Promise.withResolvers<Started>()
    this.started = promise
    promise.catch(() => {}) // after the start of the process, nobody waits for it
    const own = {
      started: resolve,
      failed: (error: SentError) =>
        reject(error.name === 'ConfigError' ? new ConfigError(error.message) : fromSent(error)),
    }
    this.#calls = new ThreadCalls(port1, { ...handlers, ...own }, onLog)
    this.#worker = new Worker(new URL('./serving-thread.ts', import.meta.url), {
      name: `serving ${data.index + 1}`,
      workerData: { ...data, port: port2 } satisfies ServingData,
      transferList: [port2],
      // Closing a descriptor of the database file would release the locks that SQLite holds on it.
      trackUnmanagedFds: false,
      resourceLimits: threadMemory,
    })
    this.#worker.on('error', onError)
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    this.ended = ended
    this.#worker.on('exit', code => {
      reject(new Error(`The thread ended with code ${code}`))
      port1.close()
      end()
    })
  }

  call<Result>(name: string, ...args: readonly unknown[]): Promise<Result> {
    return this.#calls.call(name, args)
  }

  /** Asks the thread to finish its requests. Ends it in any case. */
  async stop(atOnce: boolean, timeoutMs: number): Promise<void> {
    await within(this.call('stop', atOnce), timeoutMs).catch(() => {})
    void this.call('end').catch(() => {})
    await within(this.ended, endMs).catch(() => this.#worker.terminate())
  }
}

/** Rejects if a promise does not settle in time. */
export async function within<Result>(promise: Promise<Result>, timeoutMs: number): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('A thread does not respond')), timeoutMs)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

const endMs = 500
