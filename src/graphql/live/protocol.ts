import { type Actor, anonymous, type IdentifiedUser } from '../../core/actor.ts'
import { AppError, fault } from '../../core/errors.ts'
import type { Allowance } from '../../core/ports.ts'
import type { AuthenticatedUser } from '../../core/tokens/operations.ts'
import type { Fields } from '../../server/fields.ts'
import { Refusal, refusal, refusalFromCore } from '../errors.ts'
import type { Executor } from '../execute.ts'
import type { OperationRequest } from '../operation-request.ts'
import type { FanOut, Resume } from './fan-out.ts'
import { isPayload, type Message, messageIn, pingPayloadIn, requestIn, resumeIn, Violation } from './messages.ts'
import { type Outlet, Run, type Wire } from './run.ts'

export interface ConversationParts {
  readonly executor: Executor
  readonly fanOut: FanOut
  /** Authenticates an `Authorization` header. Rejects if it contains no valid token. */
  readonly authenticate: (authorization: string) => Promise<AuthenticatedUser>
  /** Whether a token that was accepted before has not been revoked since. */
  readonly isStillValid: (user: IdentifiedUser) => Promise<boolean>
  /** Whether tokens that this key has signed are still accepted. */
  readonly isKnownKey: (signedBy: string) => boolean
  /** The client key of the rate limit. Groups of subscriptions are counted per client. */
  readonly client: string
  /** Counts an operation of this client. Returns undefined if operations have no rate limit. */
  readonly take: () => Allowance | Promise<Allowance> | undefined
  readonly clock: { now(): number }
  /** How long a new socket may take to send `connection_init`. */
  readonly initTimeoutMs: number
  readonly report: (error: AppError) => void
}

/** `fragments` and `chunks`: the parts in which one message may arrive, as frames and as pieces of the TCP stream. */
export const socketBounds = Object.freeze({
  operations: 100,
  idLength: 256,
  message: 256 * 1024,
  fragments: 64,
  chunks: 1024,
})

/**
 * The server side of graphql-transport-ws for one client, without the socket: incoming messages go to `receive`,
 * outgoing ones to the wire. Queries and mutations run in the same way as over HTTP.
 */
export class Conversation implements Outlet {
  readonly #parts: ConversationParts
  readonly #wire: Wire
  readonly #operations = new Map<string, Run>()
  #state: 'new' | 'initialising' | 'acknowledged' | 'over' = 'new'
  /** Settles when the client is authenticated. */
  #authentication: Promise<void> | undefined
  #initTimer: NodeJS.Timeout | undefined
  /** The number of operations that are still running. */
  #executing = 0
  #endWhenIdle: (() => void) | undefined
  #expiry: NodeJS.Timeout | undefined
  #signedBy: string | undefined
  actor: Actor = anonymous

  /** `authorization` is the header of the upgrade request. */
  constructor(parts: ConversationParts, wire: Wire, authorization: string | undefined) {
    this.#parts = parts
    this.#wire = wire
    const tooLate = () => this.end(4408, 'Connection initialisation timeout')
    this.#initTimer = setTimeout(() => this.guarded(tooLate), parts.initTimeoutMs)
    if (authorization !== undefined) this.#authentication = this.#authenticate(authorization)
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

  /** Stops all operations and closes the socket. */
  end(code: number, reason: string): void {
    if (this.#state === 'over') return
    this.closed()
    this.#wire.close(code, reason)
  }

  /** Starts no more operations, and closes the socket when the running ones are answered. */
  endSoon(code: number, reason: string): void {
    this.#endWhenIdle = () => this.end(code, reason)
    if (this.#executing === 0) this.#endWhenIdle()
  }

  /** Call it when the socket is closed. */
  closed(): void {
    this.#state = 'over'
    clearTimeout(this.#initTimer)
    clearTimeout(this.#expiry)
    for (const run of this.#operations.values()) run.stop()
    this.#operations.clear()
  }

  #handle({ type, id, payload }: Message): void {
    if (type === 'connection_init') this.#initialise(payload)
    else if (type === 'subscribe') this.#begin(id, payload)
    else if (type === 'complete' && typeof id === 'string') this.#stop(id)
    else if (type === 'ping' && isPayload(payload)) this.#pong(payload)
    else if (type !== 'pong' || !isPayload(payload)) throw new Violation(4400, 'Invalid message')
  }

  #pong(payload: Fields | null | undefined): void {
    if (payload) this.send(`{"type":"pong","payload":${pingPayloadIn(payload)}}`)
    else this.#sendMessage({ type: 'pong' })
  }

  #initialise(payload: unknown): void {
    if (this.#state !== 'new') throw new Violation(4429, 'Too many initialisation requests')
    if (!isPayload(payload)) throw new Violation(4400, 'Invalid message')
    const given = payload?.authorization ?? payload?.Authorization ?? undefined
    if (given !== undefined && typeof given !== 'string') throw new Violation(4400, 'Invalid message')
    this.#state = 'initialising'
    clearTimeout(this.#initTimer)
    const earlier = Promise.resolve(this.#authentication)
    // Checked after the token of the upgrade request, so that this token takes precedence.
    this.#authentication = given === undefined ? earlier : earlier.then(() => this.#authenticate(given))
    const wantsPosition = payload?.positions === true
    this.#authentication.then(() => this.#acknowledge(wantsPosition)).catch(this.#abandon)
  }

  async #acknowledge(wantsPosition: boolean): Promise<void> {
    if (this.#state !== 'initialising') return
    const payload = wantsPosition ? { position: await this.#position() } : undefined
    if (this.#state !== 'initialising') return
    this.#state = 'acknowledged'
    this.#sendMessage({ type: 'connection_ack', payload })
  }

  async #position(): Promise<string | undefined> {
    try {
      return await this.#parts.fanOut.position()
    } catch (error) {
      this.#cannotBegin(error)
      return undefined
    }
  }

  /** Never rejects: if authentication fails, the socket is closed. */
  async #authenticate(authorization: string): Promise<void> {
    try {
      if (this.#state === 'over') return
      const { actor, signedBy, expiresAt } = await this.#parts.authenticate(authorization)
      this.actor = actor
      this.#signedBy = signedBy
      // Check again, now that these are set. A revocation during the first check could not find this socket.
      this.requireKey()
      if (!(await this.#parts.isStillValid(actor))) return this.end(4403, 'Forbidden')
      if (!this.#isOver()) this.#expireAt(expiresAt * 1000)
    } catch (error) {
      if (error instanceof AppError && error.code === 'unauthenticated') return this.end(4403, 'Forbidden')
      this.#cannotBegin(error)
    }
  }

  /** Closes the socket if the key that signed its token was removed. */
  requireKey(): void {
    if (this.#signedBy !== undefined && !this.#parts.isKnownKey(this.#signedBy)) this.end(4403, 'Forbidden')
  }

  #cannotBegin(error: unknown): void {
    this.#parts.report(error instanceof AppError ? error : fault(error))
    this.end(1013, 'Try again later')
  }

  #expireAt(instant: number): void {
    clearTimeout(this.#expiry)
    const left = instant - this.#parts.clock.now()
    // A timer can run for at most 24 days.
    const again = () => this.#expireAt(instant)
    if (left > 0) this.#expiry = setTimeout(() => this.guarded(again), Math.min(left, 2_000_000_000))
    else this.end(4403, 'Token expired')
  }

  #begin(id: unknown, payload: unknown): void {
    if (this.#state !== 'acknowledged') throw new Violation(4401, 'Unauthorized')
    if (this.#endWhenIdle !== undefined) return
    const request = requestIn(payload)
    const resume = resumeIn(payload)
    if (typeof id !== 'string' || id === '' || id.length > socketBounds.idLength) {
      throw new Violation(4400, 'Invalid message')
    }
    if (this.#operations.has(id)) throw new Violation(4409, `Subscriber for ${id} already exists`)
    // An operation that the client has cancelled may still be running.
    if (Math.max(this.#operations.size, this.#executing) >= socketBounds.operations) {
      this.#fail(id, refusal('SUBSCRIPTION_LIMIT_EXCEEDED', `At most ${socketBounds.operations} at a time.`))
      return
    }
    const run = new Run(id, this, this.#finish)
    this.#operations.set(id, run)
    this.#executing++
    this.#execute(run, request, resume)
      .catch((error: unknown) => run.fail(this.#refusalIn(error)))
      .finally(() => this.#done())
      .catch(this.#abandon)
  }

  async #execute(run: Run, request: OperationRequest, resume: Resume): Promise<void> {
    const { executor, fanOut, take, client } = this.#parts
    const allowance = await take()
    if (allowance?.allowed === false) throw refusal('RATE_LIMITED', 'Too many requests. Try again later.')
    const operation = executor.prepare(request)
    // A mutation checks the token itself, in its transaction.
    if (operation.kind !== 'mutation' && !(await this.#isStillValid())) return this.end(4403, 'Forbidden')
    if (operation.kind === 'subscription') {
      const subscription = executor.subscription(operation, request.variables, this.actor)
      run.endsBy(await fanOut.subscribe(subscription, run, client, resume))
      return
    }
    run.answer(await executor.execute(operation, request.variables, this.actor))
  }

  /** The token may have been revoked on another instance whose event has not arrived yet. */
  async #isStillValid(): Promise<boolean> {
    const { actor } = this
    return actor.kind === 'anonymous' || this.#parts.isStillValid(actor)
  }

  #done(): void {
    this.#executing--
    if (this.#executing === 0) this.#endWhenIdle?.()
  }

  /**
   * Called once, when an operation ends by itself. An operation that the client has stopped does not get here; its id
   * may already belong to another one.
   */
  readonly #finish = (run: Run, refused: Refusal | undefined): void => {
    this.#operations.delete(run.id)
    if (refused === undefined) this.#sendMessage({ id: run.id, type: 'complete' })
    else this.#fail(run.id, refused)
  }

  #stop(id: string): void {
    this.#operations.get(id)?.stop()
    this.#operations.delete(id)
  }

  #refusalIn(error: unknown): Refusal {
    if (error instanceof Refusal && !(error.cause instanceof AppError)) return error
    const cause = error instanceof Refusal ? error.cause : error
    const known = cause instanceof AppError ? cause : fault(cause)
    this.#parts.report(known)
    return error instanceof Refusal ? error : refusalFromCore(known, undefined)
  }

  #fail(id: string, { errors }: Refusal): void {
    this.#sendMessage({ id, type: 'error', payload: errors })
  }

  #sendMessage(message: object): void {
    this.send(JSON.stringify(message))
  }

  ready(): Promise<void> | undefined {
    return this.#isOver() ? undefined : this.#wire.ready()
  }

  send(message: string): void {
    if (this.#isOver()) return
    try {
      this.#wire.send(message)
    } catch (error) {
      this.#abandon(error)
    }
  }

  sendFrame(frame: Buffer): void {
    if (this.#isOver()) return
    try {
      this.#wire.sendFrame(frame)
    } catch (error) {
      this.#abandon(error)
    }
  }
}
