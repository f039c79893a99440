import { Worker } from 'node:worker_threads'

/**
 * Starting a thread takes more CPU than everything else at the start of a server. So a thread whose database is closed
 * is kept for the next database that this process opens; the tests open hundreds.
 */
export class KeptThreads {
  readonly #module: URL
  readonly #name: string
  readonly #idle = new Set<Worker>()

  constructor(module: URL, name: string) {
    this.#module = module
    this.#name = name
  }

  start(): Worker {
    const [worker = new Worker(this.#module, { name: this.#name })] = this.#idle
    this.#idle.delete(worker)
    worker.removeAllListeners('exit')
    worker.ref()
    return worker
  }

  /** Keeps a thread that has closed its database. It does not keep the process alive. */
  giveBack(worker: Worker): void {
    for (const event of ['message', 'error', 'exit']) worker.removeAllListeners(event)
    worker.unref()
    if (this.#idle.size >= mostIdle) {
      void worker.terminate()
      return
    }
    this.#idle.add(worker)
    worker.on('exit', () => this.#idle.delete(worker))
  }
}

const mostIdle = 4
