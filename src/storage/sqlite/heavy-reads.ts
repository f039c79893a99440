import type { Worker } from 'node:worker_threads'
import { unavailable } from '../../core/errors.ts'
import type { StoreObserver } from '../../core/ports.ts'
import { HeavyTurns } from '../heavy-turns.ts'
import type { Statement } from '../sql.ts'
import type { SqliteGuard } from './guard.ts'
import type { FromHeavyReader, HeavyReaderData, HeavyRows, ToHeavyReader } from './heavy-reader-thread.ts'
import { KeptThreads } from './kept-threads.ts'
import { receivedFailure } from './sent-failure.ts'

const threads = new KeptThreads(new URL('./heavy-reader-thread.ts', import.meta.url), 'heavy reads')

/**
 * Reads that take too long for the thread that serves. They run in a thread of their own, one at a time; clients take
 * turns. The thread starts with the first such read, because most servers never have one.
 */
export class HeavyReads implements AsyncDisposable {
  readonly #options: HeavyReadsOptions
  readonly #turns: HeavyTurns<HeavyRows>
  #thread: HeavyThread | undefined
  #closed = false

  constructor(options: HeavyReadsOptions) {
    this.#options = options
    this.#turns = new HeavyTurns({ atOnce: 1 }, options.waitMs)
  }

  read(statement: Statement): Promise<HeavyRows> {
    return this.#turns.run(statement, () => this.#run(statement))
  }

  async #run({ text, values }: Statement): Promise<HeavyRows> {
    if (this.#closed) throw unavailable(new Error('The store is closed'))
    const { guard, now } = this.#options
    guard.require()
    this.#thread ??= this.#start()
    try {
      const answer = await this.#thread.ask({ text, values, now: now() }, this.#options.timeoutMs)
      if ('rows' in answer) return answer
      guard.suspect(answer.sqliteCode)
      throw receivedFailure(answer)
    } finally {
      guard.check() // the thread may have opened a file that replaced ours
    }
  }

  #start(): HeavyThread {
    const { data, observer } = this.#options
    const thread: HeavyThread = new HeavyThread(data, {
      onError: error => observer.trouble('The thread of heavy reads failed', error),
      onEnd: () => {
        if (this.#thread === thread) this.#thread = undefined
      },
    })
    return thread
  }

  /** Waits for the read that runs. Those that still wait for their turn are refused. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    await this.#thread?.close()
  }
}

export interface HeavyReadsOptions {
  readonly data: HeavyReaderData
  readonly guard: SqliteGuard
  readonly now: () => number
  readonly observer: Pick<StoreObserver, 'trouble'>
  /** How long one read may take. */
  readonly timeoutMs: number
  /** How long one read may wait for its turn. */
  readonly waitMs: number
}

type Answer = Exclude<FromHeavyReader, 'closed'>

/** This thread's side of the thread of heavy reads. */
class HeavyThread {
  readonly #worker: Worker
  readonly #ended = Promise.withResolvers<void>()
  readonly #onEnd: () => void
  #asked: PromiseWithResolvers<Answer> | undefined

  constructor(data: HeavyReaderData, { onError, onEnd }: { onError: (error: unknown) => void; onEnd: () => void }) {
    this.#onEnd = onEnd
    this.#worker = threads.start()
    this.#worker.on('message', (message: FromHeavyReader) => this.#receive(message))
    this.#worker.on('error', onError)
    this.#worker.on('exit', () => this.#end('The thread of heavy reads ended'))
    this.#post(data)
  }

  /** Call it again only after the answer. */
  async ask(read: ToHeavyReader, timeoutMs: number): Promise<Answer> {
    const asked = Promise.withResolvers<Answer>()
    this.#asked = asked
    this.#post(read)
    const timer = setTimeout(() => this.#giveUp(), timeoutMs)
    try {
      return await asked.promise
    } finally {
      clearTimeout(timer)
    }
  }

  async close(): Promise<void> {
    this.#post('close')
    await this.#ended.promise
  }

  #post(message: ToHeavyReader): void {
    this.#worker.postMessage(message)
  }

  #receive(message: FromHeavyReader): void {
    if (message === 'closed') {
      threads.giveBack(this.#worker)
      this.#end('The store is closed')
    } else if ('rows' in message || 'code' in message) {
      this.#asked?.resolve(message) // under --watch, Node also sends the names of the thread's files
    }
  }

  // A thread that waits for the disk cannot be interrupted. It ends when the disk responds.
  #giveUp(): void {
    void this.#worker.terminate()
    this.#end('The disk does not respond')
  }

  #end(reason: string): void {
    this.#onEnd()
    this.#asked?.reject(unavailable(new Error(reason)))
    this.#ended.resolve()
  }
}
