import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { type AppError, unavailable } from '../../core/errors.ts'
import type { StoreObserver } from '../../core/ports.ts'
import { Queue } from '../../core/queue.ts'
import { fromSent } from '../../core/sent-error.ts'
import { type Waits, waitsNow } from '../../lib/waits.ts'
import { bounds } from '../bounds.ts'
import { outcomeUnknown } from '../engine.ts'
import type { Timeouts } from '../timeouts.ts'
import { type Job, pingVerb } from './group-commit.ts'
import type { Committed, FromWriter, ToWriter } from './writer-thread.ts'

/** A serving thread's side of the writer thread. Verbs of one turn of the event loop are sent together. */
export class SqliteWriter implements AsyncDisposable {
  readonly #options: WriterOptions
  readonly #waiting = new Map<number, Waiting>()
  #port: MessagePort | undefined
  #ended: Promise<unknown> = Promise.resolve()
  #outgoing: Job[] = []
  /** Long results, one in a turn of the event loop: each takes milliseconds. */
  readonly #long = new Queue({ atOnce: 1 })
  readonly #watch: NodeJS.Timeout
  #lastId = 0
  #hangs = false
  #closed = false
  /** What the writer thread has told about the file. */
  loss: AppError | undefined

  constructor(options: WriterOptions) {
    this.#options = options
    this.#watch = setInterval(() => this.#refuseForgotten(), options.timeouts.operation).unref()
    this.#port = this.#open()
  }

  submit(verb: string, args: readonly unknown[]): Promise<unknown> {
    if (this.loss !== undefined) return Promise.reject(this.loss)
    if (this.#closed) return Promise.reject(unavailable(new Error('The store is closed')))
    if (this.#waiting.size >= bounds.waiting || this.#hangs)
      return Promise.reject(unavailable(new Error('Too many writes are waiting, or the disk does not respond')))
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId
      this.#waiting.set(id, { verb, settle: { resolve, reject }, since: performance.now(), waits: waitsNow() })
      this.#outgoing.push([id, verb, args as readonly never[], this.#options.now()])
      if (this.#outgoing.length === 1) setImmediate(() => this.#send())
    })
  }

  /** A read has found that the file is damaged. */
  reportDamage(): void {
    this.#post('damaged')
  }

  #send(): void {
    const jobs = this.#outgoing
    if (jobs.length === 0) return
    this.#outgoing = []
    this.#post(jobs)
  }

  #post(message: ToWriter): void {
    this.#port ??= this.#open()
    this.#port.postMessage(JSON.stringify(message))
  }

  #open(): MessagePort {
    const { port1, port2 } = new MessageChannel()
    this.#ended = once(port1, 'close')
    port1.on('message', (message: string | Committed) => {
      if (typeof message === 'string') this.#receive(JSON.parse(message) as FromWriter)
      else
        void this.#long.run(async () => {
          this.#receive(message)
          await turn()
        })
    })
    port1.on('close', () => void this.#long.run(async () => this.#lost(port1)))
    this.#options.connect(port2)
    return port1
  }

  #receive(message: FromWriter): void {
    if ('lost' in message) {
      this.loss = unavailable(new Error(message.lost))
      return
    }
    if (message.verbs > 0) this.#options.observer.commit(message.verbs)
    const now = performance.now()
    for (const [id, outcome, error] of message.results) {
      const settle = this.#take(id, now, message)
      if (error === undefined) settle?.resolve(outcome)
      else settle?.reject(fromSent(error))
    }
  }

  // The entry lets go of its request, because a table of the map may keep it until the next full garbage collection.
  #take(id: number, now: number, took?: Committed): Settle | undefined {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return undefined
    const { settle, since, verb, waits } = waiting
    this.#waiting.delete(id)
    this.#hangs = false
    waiting.settle = undefined
    if (took !== undefined && waits !== undefined) recordWaits(waiting, waits, took, now)
    if (verb !== pingVerb) this.#options.observer.write((now - since) / 1000)
    return settle
  }

  // If the disk hangs, not even an error arrives. Until the first one is answered, further writes would fill the memory.
  #refuseForgotten(): void {
    const forgotten = performance.now() - this.#options.timeouts.hang
    this.#hangs = false
    for (const { since, settle } of this.#waiting.values()) {
      if (since > forgotten) return
      this.#hangs = true
      settle?.reject(outcomeUnknown(new Error('The disk does not respond')))
    }
  }

  // The thread has ended. The next write starts a new one.
  #lost(port: MessagePort): void {
    if (this.#port === port) this.#port = undefined
    const lost = outcomeUnknown(new Error('The writer thread ended'))
    for (const id of this.#waiting.keys()) this.#take(id, performance.now())?.reject(lost)
    this.#outgoing = []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    clearInterval(this.#watch)
    this.#send()
    if (this.#port !== undefined) this.#post('close')
    await this.#ended
  }
}

export interface WriterOptions {
  /** Passes a port on to the writer thread. Called at the start, and by the first write after the thread has ended. */
  readonly connect: (port: MessagePort) => void
  readonly now: () => number
  readonly observer: StoreObserver
  readonly timeouts: Timeouts
}

interface Waiting {
  readonly verb: string
  readonly since: number
  readonly waits: Waits | undefined
  settle: Settle | undefined
}

type Settle = Omit<PromiseWithResolvers<unknown>, 'promise'>

/** Before its transaction began, a verb has waited for the one before it. It may also have joined one that was running. */
function recordWaits({ since, verb }: Waiting, waits: Waits, { runMs, commitMs }: Committed, now: number): void {
  const begun = Math.max(since, now - commitMs - runMs)
  waits.add('queue', since, begun)
  waits.add('statement', begun, now - commitMs, verb)
  waits.add('commit', now - commitMs, now)
}
