import type { Refusal } from '../errors.ts'
import type { EventMessage } from './event-message.ts'
import type { Subscriber } from './groups.ts'

/** The connection to the client, of any kind. */
export interface Wire {
  /** Resolves when the client has read most of what was sent. Undefined if it has. */
  ready(): Promise<void> | undefined
  send(message: string): void
  sendFrame(frame: Buffer): void
  close(code: number, reason: string): void
}

interface Host extends Omit<Wire, 'close'> {
  /** Called once, when an operation ends by itself, and not when it is stopped. */
  finished(run: Run, refused: Refusal | undefined): void
}

/**
 * A running operation. It may be stopped before its stop function is known. An event is sent to many of them in a row,
 * so the path from here to the wire is short.
 */
export class Run implements Subscriber {
  readonly id: string
  readonly #json: string
  readonly #host: Host
  #stop: (() => void) | undefined
  #isOver = false

  constructor(id: string, host: Host) {
    this.id = id
    this.#json = JSON.stringify(id)
    this.#host = host
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
    this.#host.send(`{"id":${this.#json},"type":"next","payload":{"data":${data}}}`)
    this.end()
  }

  next(message: EventMessage): void {
    if (!this.#isOver) this.#host.sendFrame(message.frame(this.#json))
  }

  ready(): Promise<void> | undefined {
    return this.#host.ready()
  }

  end(refused?: Refusal): void {
    if (this.#isOver) return
    this.stop()
    this.#host.finished(this, refused)
  }
}
