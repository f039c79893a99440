import { type MessagePort, Worker } from 'node:worker_threads'
import { writerMemory } from '../../lib/v8.ts'
import type { FromWriter, WriterData } from './writer-thread.ts'

/**
 * The writer thread, as the thread sees it that has started it. It must be disposed after all engines that use it: the
 * writer's connection closes last, because that removes the WAL file.
 */
export class WriterWorker implements AsyncDisposable {
  readonly #data: WriterData
  readonly #trouble: (message: string, error: unknown) => void
  #worker: Worker | undefined
  #ended: Promise<void> = Promise.resolve()

  constructor(data: WriterData, trouble: (message: string, error: unknown) => void) {
    this.#data = data
    this.#trouble = trouble
  }

  /** Lets a thread send verbs over this port. Starts the writer thread if it has not started or has ended. */
  connect(port: MessagePort): void {
    this.#worker ??= this.#start()
    this.#worker.postMessage(port, [port])
  }

  #start(): Worker {
    const worker = new Worker(new URL('./writer-thread.ts', import.meta.url), {
      name: 'writer',
      trackUnmanagedFds: false, // see `watchFile`: closing its descriptor would release the locks of readers
      workerData: this.#data,
      resourceLimits: writerMemory,
    })
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#ended = promise
    worker.on('error', error => this.#trouble('The writer thread failed', error))
    worker.on('message', (text: unknown) => {
      if (typeof text !== 'string') return // under --watch, Node sends the names of the thread's files
      const message = JSON.parse(text) as FromWriter
      if ('lost' in message)
        this.#trouble('The database file is lost. Nothing is read or written until a restart.', new Error(message.lost))
    })
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
      resolve()
    })
    return worker
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#worker?.postMessage('close')
    await this.#ended
  }
}
