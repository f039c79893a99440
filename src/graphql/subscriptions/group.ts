import { type Event, isLater, type Moment, type Position } from '../../core/events.ts'
import type { Topic } from '../../core/posts/topics.ts'
import type { Selection, Slot, SlotValues } from '../../core/selection.ts'
import type { Refusal } from '../errors.ts'
import type { SharedMessage } from '../socket/shared-message.ts'
import type { Delivery } from './delivery.ts'

/** What a subscription wants to be told about, and what it wants to know of it. */
export interface Subscription {
  readonly topic: Topic
  /** The field's key in the answer. */
  readonly key: string
  readonly selection: Selection
  readonly values: SlotValues
  /** Where the id of the post or comment goes. */
  readonly id: Slot
}

/** Who is told. */
export interface Subscriber {
  next(message: SharedMessage): void
  fail(refusal: Refusal): void
  complete(): void
}

export interface Member {
  readonly subscriber: Subscriber
  readonly client: string
  /** Only what happened after this is told. Not known yet: it is held. */
  since: Moment | undefined
  readonly held: (() => void)[]
}

/** An event that a group has not been told yet. */
export interface Pending {
  readonly event: Event
  /** When it was handed to the group, in milliseconds of `performance.now()`. */
  readonly at: number
  /** What waits for it, unless the group is late. */
  readonly delivery: Delivery | undefined
}

/** Subscribers who want to know the same of the same. They are told one event after the other. */
export class Group {
  readonly id: string
  readonly subscription: Subscription
  readonly members = new Set<Member>()
  /** How many members each client has. */
  readonly #clients = new Map<string, number>()
  /** Whose turn is used for its reads: of its clients, one with few groups. */
  owner: string
  readonly backlog: Pending[] = []
  /** Whether somebody is at work on the backlog. */
  isTelling = false
  /** Others do not wait for it. */
  isLate = false
  /** How often in a row it could not be read in time. */
  strikes = 0
  #latest: Position | undefined

  constructor(id: string, subscription: Subscription, owner: string) {
    this.id = id
    this.subscription = subscription
    this.owner = owner
  }

  get isOver(): boolean {
    return this.members.size === 0
  }

  /** Whether the client had no member in it before. */
  add(member: Member): boolean {
    this.members.add(member)
    const count = this.#clients.get(member.client) ?? 0
    this.#clients.set(member.client, count + 1)
    return count === 0
  }

  /** Whether it was the client's last member. */
  remove(member: Member): boolean {
    const { client } = member
    this.members.delete(member)
    const count = this.#clients.get(client) ?? 0
    if (count > 1) {
      this.#clients.set(client, count - 1)
      return false
    }
    this.#clients.delete(client)
    if (this.owner === client) for (const [other] of this.#clients.entries().take(1)) this.owner = other
    return true
  }

  /** Takes an event that it was not handed before: what could not be delivered to all is handed to all again. */
  isNew({ position }: Event): boolean {
    if (this.#latest !== undefined && !isLater(position, this.#latest)) return false
    this.#latest = position
    return true
  }

  /** It has no members any more: nobody is to wait for it. */
  forgetBacklog(): void {
    for (const { delivery } of this.backlog.splice(0)) delivery?.told(this)
  }
}
