import type { Actor } from '../../core/actor.ts'
import type { RequestLog } from '../../http/request-log.ts'
import type { Waits } from '../../lib/waits.ts'
import { type Code, type Refusal, statusOfCode } from '../errors.ts'
import type { PreparedOperation } from '../language/documents.ts'
import type { EventMessage } from './event-message.ts'
import type { Subscriber } from './groups.ts'

/** The connection to the client, of any kind. */
export interface Wire extends Pick<Subscriber, 'ready'> {
  send(message: string): void
  sendFrame(frame: Buffer): void
  close(code: number, reason: string): void
}

interface Host extends Omit<Wire, 'close'> {
  /** Called once, however the operation has ended. */
  ended(run: Run, outcome: Outcome, refused?: Refusal): void
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
  /** Undefined until it is known to be valid. */
  operation: Pick<PreparedOperation, 'name' | 'roots'> | undefined
  readonly #since = performance.now()
  waits: Waits | undefined
  #events = 0
  /** Those of its answer or its events. */
  #bytes = 0
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
    this.#bytes = Buffer.byteLength(message)
    this.#host.send(message)
    this.end()
  }

  next(message: EventMessage): void {
    if (this.#isOver) return
    const frame = message.frame(this.#json)
    this.#events++
    this.#bytes += frame.length
    this.#host.sendFrame(frame)
  }

  ready(): Promise<void> | undefined {
    return this.#host.ready()
  }

  end(refused?: Refusal): void {
    this.#end(refused?.code ?? 'ok', refused)
  }

  #end(outcome: Outcome, refused?: Refusal): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#stop?.()
    this.#host.ended(this, outcome, refused)
  }

  /**
   * One line when it has ended, and one when it is a subscription that has `begun` slowly, which is not slow because it
   * lasts long.
   */
  log(log: RequestLog, outcome: Outcome | 'begun', client: string, actor: Actor): void {
    const { operation, waits, hasBegun } = this
    const ms = performance.now() - this.#since
    const isFailure = outcome in statusOfCode && statusOfCode[outcome as Code] >= 500
    const line = () => ({
      traceparent: waits?.span?.traceparent,
      client,
      user: actor.kind === 'user' ? actor.id : undefined,
      operation: operation?.name,
      fields: operation?.roots.join(),
      outcome,
      events: hasBegun ? this.#events : undefined,
      bytes: this.#bytes,
      ms: Math.round(ms * 100) / 100,
    })
    if (outcome === 'begun') log.tell('subscription begun', ms, waits, 'minor', line)
    else log.tell('operation ended', hasBegun ? 0 : ms, waits, isFailure ? 'failure' : 'usual', line)
  }
}
