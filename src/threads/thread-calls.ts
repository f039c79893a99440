import type { MessagePort, Transferable, Worker } from 'node:worker_threads'
import { fromSent, type SentError, toSent } from '../core/sent-error.ts'

/** Answers calls by name. Arguments and results are plain data. */
export type Handlers = Readonly<Record<string, (...args: never[]) => unknown>>

/** Calls between two threads, in both directions, over one port. Messages that are texts are passed on as they are. */
export class ThreadCalls {
  readonly #port: MessagePort | Worker
  readonly #handlers: Handlers
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  #lastId = 0
  #isOver = false

  /** `port` is a worker, or in it the port of its parent. */
  constructor(port: MessagePort | Worker, handlers: Handlers, onText: (text: string) => void = () => {}) {
    this.#port = port
    this.#handlers = handlers
    port.on('message', (message: Call | Answer | string) => {
      if (typeof message === 'string') onText(message)
      else if ('name' in message) void this.#answer(message)
      else this.#settle(message)
    })
  }

  async call<Result>(name: string, args: readonly unknown[] = [], transfer: readonly Transferable[] = []) {
    if (this.#isOver) throw new Error(ended)
    const id = ++this.#lastId
    const waiting = Promise.withResolvers<unknown>()
    this.#waiting.set(id, waiting)
    this.#port.postMessage({ id, name, args } satisfies Call, transfer)
    return (await waiting.promise) as Result
  }

  async #answer({ id, name, args }: Call): Promise<void> {
    try {
      this.#port.postMessage({ id, result: await this.#handlers[name]?.(...(args as never[])) } satisfies Answer)
    } catch (error) {
      this.#port.postMessage({ id, error: toSent(error) } satisfies Answer)
    }
  }

  #settle({ id, result, error }: Answer): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error === undefined) waiting?.resolve(result)
    else waiting?.reject(fromSent(error))
  }

  /** The other thread has ended: nothing answers any more. */
  giveUp(): void {
    this.#isOver = true
    for (const { reject } of this.#waiting.values()) reject(new Error(ended))
    this.#waiting.clear()
  }
}

const ended = 'The other thread has ended'

interface Call {
  readonly id: number
  readonly name: string
  readonly args: readonly unknown[]
}

interface Answer {
  readonly id: number
  readonly result?: unknown
  readonly error?: SentError
}
