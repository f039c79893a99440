import type { Waits } from '../../lib/waits.ts'
import type { Code, Refusal } from '../errors.ts'
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
  /** Called once, however the operation has ended. */
  ended(run: Run, outcome: Outcome): void
}

/** How an operation ended: answered to its end, stopped by its client or with its socket, or refused. */
export type Outcome = 'ok' | 'stopped' | Code

/**
 * A running operation. It may be stopped before its stop function is known. An event is sent to many of them in a row,
 * so the path from here to the wire is short.
 */
export class Run implements Subscriber {
  readonly id: string
  readonly #json: string
  readonly #host: Host
  /** The fields of the root type that it asks for. Empty until it is known to be valid. */
  roots: readonly string[] = []
  name: string | undefined
  readonly since = performance.now()
  waits: Waits | undefined
  events = 0
  /** Those of its answer or its events. */
  bytes = 0
  #stop: (() => void) | undefined
  #isOver = false

  constructor(id: string, host: Host, waits?: Waits) {
    this.id = id
    this.#json = JSON.stringify(id)
    this.#host = host
    this.waits = waits
  }

  /** Whether it is a subscription that receives events, or has received them. */
  get hasBegun(): boolean {
    return this.#stop !== undefined
  }

  /** Sets the function that stops the operation. Calls it at once if the operation is already over. */
  endsBy(stop: () => void): void {
    if (this.#isOver) stop()
    else this.#stop = stop
  }

  stop(): void {
    this.#end('stopped')
  }

  answer(data: string): void {
    if (this.#isOver) return
    const message = `{"id":${this.#json},"type":"next","payload":{"data":${data}}}`
    this.bytes = Buffer.byteLength(message)
    this.#host.send(message)
    this.end()
  }

  next(message: EventMessage): void {
    if (this.#isOver) return
    const frame = message.frame(this.#json)
    this.events++
    this.bytes += frame.length
    this.#host.sendFrame(frame)
  }

  ready(): Promise<void> | undefined {
    return this.#host.ready()
  }

  end(refused?: Refusal): void {
    if (this.#isOver) return
    this.#end(refused?.code ?? 'ok')
    this.#host.finished(this, refused)
  }

  #end(outcome: Outcome): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#stop?.()
    this.#host.ended(this, outcome)
  }
}
