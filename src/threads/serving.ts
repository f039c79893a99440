import { Worker } from 'node:worker_threads'
import type { App } from '../app.ts'
import type { Config } from '../config.ts'
import type { MetricsOfThread } from '../http/metrics.ts'
import { threadMemory } from '../lib/v8.ts'
import { within } from '../lib/within.ts'
import type { ServingData } from './serving-thread.ts'
import { type Handlers, ThreadCalls } from './thread-calls.ts'

/** The main thread's side of a thread that serves. */
export class Serving extends ThreadCalls {
  readonly index: number
  readonly ended: Promise<void>
  readonly metrics: () => Promise<MetricsOfThread | undefined>
  readonly #worker: Worker

  /** `handlers`: what the thread may ask of the main thread. */
  constructor(
    data: ServingData,
    handlers: Handlers,
    onLog: (lines: string) => void,
    onError: (error: unknown) => void,
  ) {
    const worker = new Worker(new URL('./serving-thread.ts', import.meta.url), {
      name: `serving ${data.index + 1}`,
      workerData: data,
      resourceLimits: threadMemory,
    })
    super(worker, handlers, onLog)
    this.index = data.index
    this.#worker = worker
    worker.on('error', onError)
    this.ended = new Promise(resolve => worker.once('exit', () => resolve()))
    void this.ended.then(() => this.giveUp())
    this.metrics = orLast(() => this.call('metrics'))
  }

  /** Rejects if the thread could not start; then it ends. */
  async start(
    found: Pick<Config, 'port' | 'maintenance'>,
    demoLoginWorks?: boolean,
  ): Promise<Pick<App, 'url' | 'demoLoginWorks'>> {
    try {
      return await this.call('start', [found, demoLoginWorks])
    } catch (error) {
      await this.#end()
      throw error
    }
  }

  /** Asks the thread to finish its requests. Ends it in any case. */
  async stop(atOnce: boolean, timeoutMs: number): Promise<void> {
    await within(this.call('stop', [atOnce]), timeoutMs, late).catch(() => {})
    await this.#end()
  }

  async #end(): Promise<void> {
    this.call('end').catch(() => {})
    await within(this.ended, endMs, late).catch(() => this.#worker.terminate())
  }
}

/**
 * What a thread tells, or if it is late what it told last: if it were left out, the sums of all threads would fall, which
 * Prometheus takes for a restart.
 */
export function orLast<Told>(ask: () => Promise<Told>, waitMs = 1_000): () => Promise<Told | undefined> {
  let last: Told | undefined
  return async () => {
    last = await within(ask(), waitMs, late).catch(() => last)
    return last
  }
}

const late = 'A thread does not respond'
const endMs = 500
