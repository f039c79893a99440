import type { Config } from '../config.ts'

/** Where threads wait for each other: before they listen, and after they have stopped to. */
export class Rendezvous {
  readonly #config: Config
  readonly #ready = new Set<number>()
  readonly #allReady = Promise.withResolvers<void>()
  readonly #port = Promise.withResolvers<number>()
  #isFirst = true
  #stopped = 0
  readonly #allStopped = Promise.withResolvers<void>()

  constructor(config: Config) {
    this.#config = config
  }

  /** The service can be reached when all its threads are ready. The first thread finds the port for all. */
  async mayListen(index: number): Promise<{ port: number; reusePort: true }> {
    this.#ready.add(index)
    if (this.#ready.size === this.#config.threads) this.#allReady.resolve()
    await this.#allReady.promise
    if (index > 0 || !this.#isFirst) return { port: await this.#port.promise, reusePort: true }
    this.#isFirst = false
    return { port: this.#config.port, reusePort: true }
  }

  started(index: number, url: string): void {
    if (index === 0) this.#port.resolve(Number(new URL(url).port))
  }

  /** Resolves when so many threads have stopped, or after a moment: one of them may have ended. */
  async stoppedListening(threads: number): Promise<void> {
    if (++this.#stopped >= threads) this.#allStopped.resolve()
    const timer = setTimeout(() => this.#allStopped.resolve(), mostMs)
    await this.#allStopped.promise
    clearTimeout(timer)
  }
}

const mostMs = 700
