import type { Refusal } from '../errors.ts'
import type { Subscriber } from '../subscriptions/fan-out.ts'
import { type SharedMessage, startOf } from './shared-message.ts'

/** Where messages go. */
export interface Outlet {
  send(message: string): void
  sendFrame(frame: Buffer): void
}

/** The other end, however it is reached. */
export interface Wire extends Outlet {
  close(code: number, reason: string): void
}

/**
 * An operation under way, which may be over before there is anything to stop. Many are told an event one after the other,
 * so that the way from here to the wire is short.
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

  /** What ends it, from now on. */
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
