import { setImmediate as turn } from 'node:timers/promises'
import { type AppError, fault } from '../../core/errors.ts'
import type { Event } from '../../core/events.ts'
import type { Refusal } from '../errors.ts'
import { SharedMessage } from '../socket/shared-message.ts'
import type { FanOutObserver, Group, Member } from './group.ts'
import type { Groups } from './groups.ts'

/** What the members of a group get for an event. `undefined`: the subscription is over. */
type Sent = SharedMessage | Refusal | undefined

export interface SenderParts {
  readonly groups: Groups
  readonly observer: FanOutObserver
  /** What a subscriber is told about an error. */
  readonly refusalOf: (error: unknown) => Refusal
  readonly report: (error: AppError) => void
  readonly now: () => number
}

/** Sends messages to the members of groups, and ends subscriptions. */
export class Sender {
  readonly #parts: SenderParts

  constructor(parts: SenderParts) {
    this.#parts = parts
  }

  /** Sends the message of an event to all members of a group that accept the event. */
  async sendToAll(group: Group, event: Event, message: Sent): Promise<void> {
    let reached = 0
    let done = 0
    const untilLook = message instanceof SharedMessage && message.bytes > largeMessage ? 1 : 64
    let end = performance.now() + sliceMs
    for (const member of group.members) {
      if (member.accepts === undefined) member.held.push(() => this.#sendLate(event, group, member, message))
      else if (this.#sendIfAccepted(event, group, member, message)) reached++
      // There may be many members or a large message, so other work gets its turn in between.
      if (++done % untilLook === 0 && performance.now() > end) {
        await turn()
        end = performance.now() + sliceMs
      }
    }
    this.#count(event, reached)
  }

  #sendLate(event: Event, group: Group, member: Member, message: Sent): void {
    this.#count(event, this.#sendIfAccepted(event, group, member, message) ? 1 : 0)
  }

  #count(event: Event, reached: number): void {
    const { observer, now } = this.#parts
    if (reached > 0) observer.delivered(reached, Math.max(0, now() - event.at) / 1000)
  }

  #sendIfAccepted(event: Event, group: Group, member: Member, message: Sent): boolean {
    return member.accepts?.(event) === true && this.send(message, group, member)
  }

  /** Sends a message to one member. Returns whether it was sent. */
  send(message: Sent, group: Group, member: Member): boolean {
    if (!(message instanceof SharedMessage)) {
      this.dismiss(group, member, message)
      return false
    }
    try {
      member.subscriber.next(message)
      return true
    } catch (error) {
      this.dismiss(group, member, this.#parts.refusalOf(error))
      return false
    }
  }

  /** Ends a member's subscription, because the post is gone or the selection cannot be delivered. */
  dismiss(group: Group, member: Member, reason: Refusal | undefined): void {
    this.#parts.groups.leave(group, member)
    try {
      if (reason === undefined) member.subscriber.complete()
      else member.subscriber.fail(reason)
    } catch (error) {
      this.#parts.report(fault(error))
    }
  }

  /** Ends the subscriptions of all members. */
  endAll(group: Group, reason: Refusal): void {
    for (const member of group.members) this.dismiss(group, member, reason)
  }
}

/** Maximum milliseconds of sending before other work gets its turn. */
const sliceMs = 5
/** Bytes of a message of which each copy takes a noticeable time. */
const largeMessage = 64 * 1024
