import { setImmediate as turn } from 'node:timers/promises'
import { AppError, fault } from '../../core/errors.ts'
import type { Event } from '../../core/events.ts'
import { Refusal, refusal, refusalFromCore } from '../errors.ts'
import type { Group, Member } from './group.ts'
import type { Groups } from './groups.ts'
import type { SharedMessage } from './shared-message.ts'

export interface FanOutObserver {
  /** An event reached this many subscribers of a group, this many seconds after its commit. */
  delivered(subscribers: number, seconds: number): void
  /** The post or comment of the event no longer exists. */
  skipped(): void
  /** A subscriber received an event that happened before it joined the live group. */
  replayed(): void
}

export interface SenderParts {
  readonly observer: FanOutObserver
  readonly now: () => number
  readonly report: (error: AppError) => void
}

/** Sends messages to the members of groups, and ends subscriptions. */
export class Sender {
  readonly #groups: Groups
  readonly #parts: SenderParts

  constructor(groups: Groups, parts: SenderParts) {
    this.#groups = groups
    this.#parts = parts
  }

  /** Sends the message of an event to all members of a group that want it. */
  async send(group: Group, event: Event, message: SharedMessage): Promise<void> {
    const { observer, now } = this.#parts
    const isLive = this.#groups.isLive(group)
    let reached = 0
    let done = 0
    const untilLook = message.bytes > largeMessage ? 1 : 64
    let end = performance.now() + sliceMs
    for (const member of group.members) {
      if (event.position > member.from && this.#sendTo(member, message)) reached++
      // There may be many members or a large message, so other work gets its turn in between.
      if (++done % untilLook === 0 && performance.now() > end) {
        await turn()
        end = performance.now() + sliceMs
      }
    }
    if (isLive && reached > 0) observer.delivered(reached, Math.max(0, now() - event.at) / 1000)
    else if (reached > 0) observer.replayed()
  }

  #sendTo(member: Member, message: SharedMessage): boolean {
    try {
      member.subscriber.next(message)
      return true
    } catch (error) {
      this.#dismiss(member, this.#refusalOf(error))
      return false
    }
  }

  /** Ends the subscriptions of all members: the topic has ended, or the selection cannot be delivered. */
  endAll(group: Group, reason: unknown): void {
    const refused = reason === undefined ? undefined : this.#refusalOf(reason)
    for (const member of group.members) this.#dismiss(member, refused)
  }

  #dismiss(member: Member, reason: Refusal | undefined): void {
    this.#groups.leave(member)
    try {
      if (reason === undefined) member.subscriber.complete()
      else member.subscriber.fail(reason)
    } catch (error) {
      this.#parts.report(fault(error))
    }
  }

  /** What a subscriber is told about an error. */
  #refusalOf(error: unknown): Refusal {
    if (error instanceof Refusal) return error
    if (error instanceof AppError && error.code === 'answer-too-large') return refusalFromCore(error, undefined)
    this.#parts.report(error instanceof AppError ? error : fault(error))
    return refusal('INTERNAL_SERVER_ERROR', 'Internal server error')
  }
}

/** Maximum milliseconds of sending before other work gets its turn. */
const sliceMs = 5
/** Bytes of a message of which each copy takes a noticeable time. */
const largeMessage = 64 * 1024
