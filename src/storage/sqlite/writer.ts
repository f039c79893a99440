import { type AppError, unavailable } from '../../core/errors.ts'
import type { StoreObserver } from '../../core/ports.ts'
import { bounds } from '../bounds.ts'
import type { Timeouts } from '../timeouts.ts'
import { type Job, pingVerb } from './group-commit.ts'
import type { SqliteGuard } from './guard.ts'
import { receivedFailure } from './sent-failure.ts'
import type { WriterLink } from './writer-link.ts'
import type { Committed, SentResult, ToWriter } from './writer-thread.ts'

/** A serving thread's side of the writer thread. Verbs of one turn of the event loop are sent together. */
export class SqliteWriter implements AsyncDisposable {
  readonly #open: () => WriterLink
  readonly #guard: SqliteGuard
  readonly #now: () => number
  readonly #observer: StoreObserver
  readonly #timeouts: Timeouts
  readonly #waiting = new Map<number, Waiting>()
  #link: WriterLink | undefined
  #ended: Promise<void> = Promise.resolve()
  #outgoing: Job[] = []
  #watch: NodeJS.Timeout | undefined
  #lastId = 0
  #closed = false

  constructor({ open, guard, now, observer, timeouts }: WriterOptions) {
    this.#open = open
    this.#guard = guard
    this.#now = now
    this.#observer = observer
    this.#timeouts = timeouts
    this.#link = this.#connect()
  }

  submit(verb: string, args: readonly unknown[]): Promise<unknown> {
    if (this.#closed) return Promise.reject(unavailable(new Error('The store is closed')))
    if (this.#waiting.size >= bounds.waiting)
      return Promise.reject(unavailable(new Error('Too many writes are waiting')))
    return new Promise((resolve, reject) => {
      this.#guard.require()
      const id = ++this.#lastId
      this.#waiting.set(id, { settle: { resolve, reject }, since: performance.now() })
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
    this.#link ??= this.#connect()
    this.#link.post(JSON.stringify(jobs satisfies ToWriter))
  }

  #connect(): WriterLink {
    const link = this.#open()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#ended = promise
    link.listen({
      onMessage: text => this.#receive(JSON.parse(text) as Committed),
      onError: error => this.#observer.trouble('The writer thread failed', error),
      onEnd: () => {
        resolve()
        this.#lost(link)
      },
    })
    return link
  }

  #receive({ verbs, results }: Committed): void {
    if (verbs > 0) this.#observer.commit(verbs)
    const loss = this.#lossAfter(results)
    for (const result of results) this.#settle(result, loss)
  }

  /** The error if the file is lost. Commits to a lost file do not count, so their verbs are rejected. */
  #lossAfter(results: Committed['results']): AppError | undefined {
    for (const [, , failure] of results) this.#guard.suspect(failure?.sqliteCode)
    try {
      this.#guard.check()
      return undefined
    } catch (error) {
      return error as AppError
    }
  }

  #settle([id, outcome, failure]: SentResult, loss: AppError | undefined): void {
    const waiting = this.#take(id)
    if (loss !== undefined) waiting?.reject(loss)
    else if (failure === undefined) waiting?.resolve(outcome)
    else waiting?.reject(receivedFailure(failure))
  }

  // The entry lets go of its request, because a table of the map may keep it until the next full garbage collection;
  // see `Slots`.
  #take(id: number): Settle | undefined {
    const waiting = this.#waiting.get(id)
    const settle = waiting?.settle
    this.#waiting.delete(id)
    if (waiting !== undefined) waiting.settle = undefined
    return settle
  }

  // If the disk hangs, not even an error arrives. A write that is rejected here may still be committed.
  #refuseForgotten(): void {
    const late = performance.now() - this.#timeouts.hang
    for (const [id, { since }] of this.#waiting) {
      if (since > late) return
      this.#take(id)?.reject(unavailable(new Error('The disk does not respond')))
    }
    if (this.#waiting.size > 0) return
    clearInterval(this.#watch)
    this.#watch = undefined
  }

  // The thread has ended. Waiting callers cannot know whether their write was committed. The next write starts a new
  // one.
  #lost(link: WriterLink): void {
    if (this.#link === link) this.#link = undefined
    const lost = unavailable(new Error('The writer thread ended'))
    for (const id of this.#waiting.keys()) this.#take(id)?.reject(lost)
    this.#outgoing = []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    clearInterval(this.#watch)
    this.#send()
    this.#link?.post(JSON.stringify('close' satisfies ToWriter))
    await this.#ended
  }
}

export interface WriterOptions {
  /** Called at the start, and again by the first write after the thread has ended. */
  readonly open: () => WriterLink
  readonly guard: SqliteGuard
  readonly now: () => number
  readonly observer: StoreObserver
  readonly timeouts: Timeouts
}

interface Waiting {
  readonly since: number
  settle: Settle | undefined
}

interface Settle {
  resolve(outcome: unknown): void
  reject(error: AppError): void
}
