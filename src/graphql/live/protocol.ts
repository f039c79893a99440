import { AppError, fault } from '../../core/errors.ts'
import { placeToText } from '../../core/events.ts'
import type { Fields } from '../../core/input.ts'
import type { Allowance } from '../../core/ports.ts'
import { answerText } from '../../core/selection.ts'
import { traceparentIn } from '../../http/logging.ts'
import type { Metrics } from '../../http/metrics.ts'
import type { RequestLog } from '../../http/request-log.ts'
import { inSlices } from '../../lib/pace.ts'
import type { RequestsAtOnce } from '../../lib/requests-at-once.ts'
import { during } from '../../lib/waits.ts'
import { whenLate } from '../../lib/within.ts'
import { type Refusal, refusal, reportedRefusal } from '../errors.ts'
import type { Executor } from '../execute.ts'
import type { OperationRequest } from '../request.ts'
import type { FanOut } from './fan-out.ts'
import { Login, type LoginParts } from './login.ts'
import { isPayload, messageIn, pongTo, type Resume, requestIn, resumeIn, socketBounds, Violation } from './messages.ts'
import { type Outcome, Run, type Wire } from './run.ts'

export interface ConversationParts extends LoginParts {
  readonly executor: Executor
  readonly fanOut: FanOut
  /** The client key of the rate limit. Groups of subscriptions are counted per client. */
  readonly client: string
  /** Counts an operation of this client. Returns undefined if operations have no rate limit. */
  readonly take: () => Allowance | Promise<Allowance> | undefined
  /** None if operations have no rate limit. */
  readonly atOnce?: RequestsAtOnce | undefined
  readonly initTimeoutMs: number
  readonly observer: Pick<Metrics['sockets'], 'ended'>
  readonly requestLog: RequestLog
  readonly report: (error: AppError) => void
}

/**
 * The server side of graphql-transport-ws for one client, without the socket: incoming messages go to `receive`,
 * outgoing ones to the wire. Queries and mutations run in the same way as over HTTP.
 */
export class Conversation {
  readonly #parts: ConversationParts
  readonly #wire: Wire
  readonly login: Login
  readonly #operations = new Map<string, Run>()
  #state: 'new' | 'initialising' | 'acknowledged' | 'over' = 'new'
  /** Settles when the client is authenticated. */
  #authentication: Promise<void> | undefined
  readonly #initTimer: NodeJS.Timeout
  #executing = 0
  #endWhenIdle: (() => void) | undefined

  /** `authorization` is the header of the upgrade request. */
  constructor(parts: ConversationParts, wire: Wire, authorization: string | undefined) {
    this.#parts = parts
    this.#wire = wire
    this.login = new Login(parts, this)
    const tooLate = () => this.#state === 'new' && this.end(4408, 'Connection initialisation timeout')
    this.#initTimer = whenLate(parts.initTimeoutMs, () => this.guarded(tooLate))
    if (authorization !== undefined) this.#authentication = this.#authenticate(authorization)
  }

  #authenticate(authorization: string): Promise<void> {
    const { joins } = this.#parts.fanOut
    return joins.inTurn(() => this.login.authenticate(authorization)).catch(error => this.#giveUp(error))
  }

  /** A method and not a getter: V8 calls private getters through its runtime, which every event to every socket would pay. */
  #isOver(): boolean {
    return this.#state === 'over'
  }

  receive(message: Buffer): void {
    this.guarded(() => {
      if (!this.#isOver()) this.#handle(messageIn(message))
    })
  }

  /**
   * Runs work for this socket. An error closes only this socket; if it were thrown from a callback of the runtime, it
   * would end the process.
   */
  guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (error instanceof Violation) this.end(error.code, error.message)
      else this.#abandon(error)
    }
  }

  readonly #abandon = (error: unknown): void => {
    this.end(1011, 'Internal server error')
    this.#parts.report(fault(error))
  }

  #giveUp(error: unknown): void {
    this.#parts.report(error instanceof AppError ? error : fault(error))
    this.end(1013, 'Try again later')
  }

  /** Stops all operations and closes the socket. */
  end(code: number, reason: string): void {
    if (this.#isOver()) return
    this.closed()
    this.#wire.close(code, reason)
  }

  /** Starts no more operations, and closes the socket when the running ones are answered. */
  endSoon(code: number, reason: string): void {
    this.#endWhenIdle = () => this.end(code, reason)
    if (this.#executing === 0) this.#endWhenIdle()
  }

  closed(): void {
    this.#state = 'over'
    clearTimeout(this.#initTimer)
    this.login.stop()
    inSlices(this.#operations.values(), run => run.stop()).catch(this.#abandon)
  }

  #handle({ type, id, payload }: Fields): void {
    if (type === 'connection_init') this.#initialise(payload)
    else if (type === 'subscribe') this.#begin(id, payload)
    else if (type === 'complete' && typeof id === 'string') {
      this.#operations.get(id)?.stop()
      this.#operations.delete(id)
    } else if (type === 'ping' && isPayload(payload)) this.send(pongTo(payload))
    else if (type !== 'pong' || !isPayload(payload)) throw new Violation(4400, 'Invalid message')
  }

  #initialise(payload: unknown): void {
    if (this.#state !== 'new') throw new Violation(4429, 'Too many initialisation requests')
    const given = isPayload(payload) ? (payload?.authorization ?? payload?.Authorization ?? undefined) : 0
    if (given !== undefined && typeof given !== 'string') throw new Violation(4400, 'Invalid message')
    this.#state = 'initialising'
    clearTimeout(this.#initTimer)
    const earlier = Promise.resolve(this.#authentication)
    // Checked after the token of the upgrade request, so that this token takes precedence.
    this.#authentication = given === undefined ? earlier : earlier.then(() => this.#authenticate(given))
    const wantsPosition = isPayload(payload) && payload?.positions === true
    this.#authentication.then(() => this.#acknowledge(wantsPosition)).catch(error => this.#giveUp(error))
  }

  async #acknowledge(wantsPosition: boolean): Promise<void> {
    const payload = wantsPosition ? { position: placeToText(await this.#parts.fanOut.joins.end()) } : undefined
    if (this.#state !== 'initialising') return
    this.#state = 'acknowledged'
    this.#tell({ type: 'connection_ack', payload })
  }

  #begin(id: unknown, payload: unknown): void {
    if (this.#state !== 'acknowledged') throw new Violation(4401, 'Unauthorized')
    if (this.#endWhenIdle !== undefined) return
    const request = requestIn(payload)
    const resume = resumeIn(request)
    if (typeof id !== 'string' || id === '' || id.length > socketBounds.idLength)
      throw new Violation(4400, 'Invalid message')
    if (this.#operations.has(id)) throw new Violation(4409, `Subscriber for ${id} already exists`)
    const run = new Run(
      id,
      this,
      this.#parts.requestLog.begin('graphql', 'operation', traceparentIn(request.extensions?.traceparent)),
    )
    // An operation that the client has cancelled may still be running.
    if (Math.max(this.#operations.size, this.#executing) >= socketBounds.operations) {
      run.end(refusal('SUBSCRIPTION_LIMIT_EXCEEDED', `At most ${socketBounds.operations} at a time.`))
      return
    }
    this.#operations.set(id, run)
    this.#executing++
    during(run.waits, () => this.#execute(run, request, resume))
      .catch((error: unknown) => run.end(reportedRefusal(error, this.#parts.report)))
      .finally(() => {
        this.#executing--
        if (this.#executing === 0) this.#endWhenIdle?.()
      })
      .catch(this.#abandon)
  }

  async #execute(run: Run, request: OperationRequest, resume: Resume): Promise<void> {
    const { executor, fanOut, take, atOnce, client, requestLog } = this.#parts
    const allowance = await take()
    if (allowance?.allowed === false) throw refusal('RATE_LIMITED', 'Too many requests. Try again later.')
    const operation = executor.prepare(request)
    run.operation = { name: operation.name, roots: operation.roots } // the rest is large, and it may last long
    const { actor } = this.login
    if (operation.kind === 'subscription') {
      const { joins } = fanOut
      const begin = resume.after === undefined ? await joins.end() : undefined // however long it waits from here on
      const isValid = await joins.share(JSON.stringify(actor), () => this.login.isStillValid())
      if (!isValid) return this.end(4403, 'Forbidden')
      const subscription = executor.subscription(operation, request.variables, actor)
      run.endsBy(await fanOut.subscribe(subscription, run, client, resume, begin))
      if (run.hasBegun) run.log(requestLog, 'begun', client, actor)
      run.waits = undefined // it may last long
      return
    }
    const answer = async () => {
      // A mutation checks the token itself, in its transaction.
      if (operation.kind === 'query' && !(await this.login.isStillValid())) return this.end(4403, 'Forbidden')
      run.answer(answerText(await executor.execute(operation, request.variables, actor)))
    }
    await (atOnce === undefined ? answer() : atOnce.during(client, answer))
  }

  ended(run: Run, outcome: Outcome, refused?: Refusal): void {
    const [first = '(none)', ...others] = run.operation?.roots ?? []
    const { observer, requestLog, client } = this.#parts
    observer.ended(others.length === 0 ? first : '(several)', outcome)
    run.log(requestLog, outcome, client, this.login.actor)
    if (outcome === 'stopped') return // another operation may have its id by now
    this.#operations.delete(run.id)
    if (refused === undefined) this.#tell({ id: run.id, type: 'complete' })
    else this.#tell({ id: run.id, type: 'error', payload: refused.errors })
  }

  #tell(message: object): void {
    this.send(JSON.stringify(message))
  }

  ready(): Promise<void> | undefined {
    return this.#isOver() ? undefined : this.#wire.ready()
  }

  send(message: string): void {
    if (!this.#isOver()) this.guarded(() => this.#wire.send(message))
  }

  sendFrame(frame: Buffer): void {
    if (!this.#isOver()) this.guarded(() => this.#wire.sendFrame(frame))
  }
}
