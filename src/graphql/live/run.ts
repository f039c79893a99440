import type { Refusal } from '../errors.ts'
import type { Subscriber } from './group.ts'
import { type SharedMessage, startOf } from './shared-message.ts'

/** Sends messages to a client. */
export interface Outlet {
  /** Resolves when the client has read most of what was sent. Undefined if it has. */
  ready(): Promise<void> | undefined
  send(message: string): void
  sendFrame(frame: Buffer): void
}

/** The connection to the client, of any kind. */
export interface Wire extends Outlet {
  close(code: number, reason: string): void
}

/**
 * A running operation. It may be stopped before its stop function is known. An event is sent to many of them in a row,
 * so the path from here to the wire is short.
 */
export class Run implements Subscriber {
  readonly id: string
  readonly #outlet: Outlet
  readonly #finished: (run: Run, refused: Refusal | undefined) => void
  #start: Buffer | undefined
  #stop: (() => void) | undefined
  #isOver = false

  constructor(id: string, outlet: Outlet, finished: (run: Run, refused: Refusal | undefined) => void) {
    this.id = id
    this.#outlet = outlet
    this.#finished = finished
  }

  /** Sets the function that stops the operation. Calls it at once if the operation is already over. */
  endsBy(stop: () => void): void {
    if (this.#isOver) stop()
    else this.#stop = stop
  }

  stop(): void {
    this.#isOver = true
    this.#stop?.()
  }

  answer(data: string): void {
    if (this.#isOver) return
    this.#outlet.send(`{"id":${JSON.stringify(this.id)},"type":"next","payload":{"data":${data}}}`)
    this.complete()
  }

  next(message: SharedMessage): void {
    if (this.#isOver) return
    this.#start ??= startOf(this.id)
    this.#outlet.sendFrame(message.frame(this.#start))
  }

  ready(): Promise<void> | undefined {
    return this.#outlet.ready()
  }

  fail(refused: Refusal): void {
    this.#finish(refused)
  }

  complete(): void {
    this.#finish(undefined)
  }

  #finish(refused: Refusal | undefined): void {
    if (this.#isOver) return
    this.stop()
    this.#finished(this, refused)
  }
}
