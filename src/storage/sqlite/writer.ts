import type { Worker } from 'node:worker_threads'
import { AppError, unavailable } from '../../core/errors.ts'
import type { StoreObserver } from '../../core/ports.ts'
import { bounds } from '../bounds.ts'
import type { Timeouts } from '../timeouts.ts'
import { type Job, pingVerb } from './group-commit.ts'
import type { SqliteGuard } from './guard.ts'
import type { FromWriter, SentResult, ToWriter, WriterData } from './writer-thread.ts'
import { returnThread, takeThread } from './writer-threads.ts'

/** The main thread's side of the writer thread. Verbs of one turn of the event loop are sent together. */
export class SqliteWriter implements AsyncDisposable {
  readonly #data: WriterData
  readonly #guard: SqliteGuard
  readonly #now: () => number
  readonly #observer: StoreObserver
  readonly #timeouts: Timeouts
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | undefined
  #outgoing: Job[] = []
  #watch: NodeJS.Timeout | undefined
  #lastId = 0
  #closed = false
  /** Called when the thread has closed the database, or has ended. */
  #onGone = () => {}

  constructor({ path, guard, catalogueUrl, now, observer, timeouts }: WriterOptions) {
    this.#data = { path, catalogueUrl, busyMs: timeouts.operation }
    this.#guard = guard
    this.#now = now
    this.#observer = observer
    this.#timeouts = timeouts
    this.#worker = this.#launch()
  }

  submit(verb: string, args: readonly unknown[]): Promise<unknown> {
    if (this.#closed) return Promise.reject(unavailable(new Error('The store is closed')))
    if (this.#waiting.size >= bounds.waiting)
      return Promise.reject(unavailable(new Error('Too many writes are waiting')))
    return new Promise((resolve, reject) => {
      this.#guard.require()
      const id = ++this.#lastId
      this.#waiting.set(id, { resolve, reject, since: performance.now() })
      this.#watch ??= setInterval(() => this.#refuseForgotten(), this.#timeouts.operation).unref()
      this.#outgoing.push([id, verb, args as readonly never[], this.#now()])
      if (this.#outgoing.length === 1) setImmediate(() => this.#send())
    })
  }

  ping(): Promise<unknown> {
    return this.submit(pingVerb, [])
  }

  #send(): void {
    const jobs = this.#outgoing
    if (jobs.length === 0) return
    this.#outgoing = []
    this.#worker ??= this.#launch()
    post(this.#worker, jobs)
  }

  #launch(): Worker {
    const worker = takeThread()
    worker.on('message', (text: unknown) => {
      if (typeof text !== 'string') return // under --watch, Node also sends the names of the thread's files here
      const results = JSON.parse(text) as FromWriter
      if (results === 'closed') return this.#release(worker)
      this.#observer.commit(results.length)
      const loss = this.#lossAfter(results)
      for (const result of results) this.#settle(result, loss)
    })
    worker.on('error', error => this.#observer.trouble('The writer thread failed', error))
    worker.on('exit', () => this.#lost(worker))
    post(worker, this.#data)
    return worker
  }

  /** The error if the file is lost. Commits to a lost file do not count, so their verbs are rejected. */
  #lossAfter(results: readonly SentResult[]): AppError | undefined {
    for (const [, , failure] of results) this.#guard.suspect(failure?.sqliteCode)
    try {
      this.#guard.check()
      return undefined
    } catch (error) {
      return error as AppError
    }
  }

  #settle([id, outcome, failure]: SentResult, loss: AppError | undefined): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (loss !== undefined) waiting?.reject(loss)
    else if (failure === undefined) waiting?.resolve(outcome)
    else
      waiting?.reject(new AppError(failure.code, failure.message, { cause: new Error(failure.detail), at: failure.at }))
  }

  // If the disk hangs, not even an error arrives. A write that is rejected here may still be committed.
  #refuseForgotten(): void {
    const late = performance.now() - this.#timeouts.hang
    for (const [id, { since, reject }] of this.#waiting) {
      if (since > late) return
      this.#waiting.delete(id)
      reject(unavailable(new Error('The disk does not respond')))
    }
    if (this.#waiting.size > 0) return
    clearInterval(this.#watch)
    this.#watch = undefined
  }

  // The thread has ended. Waiting callers cannot know whether their write was committed. The next write starts a new
  // one.
  #lost(worker: Worker): void {
    if (this.#worker === worker) this.#worker = undefined
    const lost = unavailable(new Error('The writer thread ended'))
    for (const { reject } of this.#waiting.values()) reject(lost)
    this.#waiting.clear()
    this.#outgoing = []
    this.#onGone()
  }

  #release(worker: Worker): void {
    returnThread(worker)
    this.#onGone()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    clearInterval(this.#watch)
    this.#send()
    const worker = this.#worker
    if (worker === undefined) return
    const gone = new Promise<void>(resolve => {
      this.#onGone = resolve
    })
    post(worker, 'close')
    await gone
  }
}

function post(worker: Worker, message: ToWriter): void {
  worker.postMessage(JSON.stringify(message))
}

export interface WriterOptions {
  readonly path: string
  readonly guard: SqliteGuard
  /** The URL of the module that exports the verbs. The thread imports it itself. */
  readonly catalogueUrl: string
  readonly now: () => number
  readonly observer: StoreObserver
  readonly timeouts: Timeouts
}

interface Waiting {
  readonly since: number
  resolve(outcome: unknown): void
  reject(error: AppError): void
}
