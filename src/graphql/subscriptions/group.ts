import { type Event, isLater, type Position } from '../../core/events.ts'
import type { Topic } from '../../core/posts/topics.ts'
import type { Selection, Slot, SlotValues } from '../../core/selection.ts'
import type { Refusal } from '../errors.ts'
import type { SharedMessage } from '../socket/shared-message.ts'
import type { Delivery } from './delivery.ts'

/** A subscription: the topic, and the selection to read for each event. */
export interface Subscription {
  readonly topic: Topic
  /** The field's key in the answer. */
  readonly key: string
  readonly selection: Selection
  readonly values: SlotValues
  /** The slot for the id of the post or comment. */
  readonly id: Slot
}

/** Receives the messages of a subscription. */
export interface Subscriber {
  /** Resolves when its client has read most of what was sent. Undefined if it has. */
  ready(): Promise<void> | undefined
  next(message: SharedMessage): void
  fail(refusal: Refusal): void
  complete(): void
}

export interface FanOutObserver {
  /** An event reached this many subscribers of a group, this many seconds after its commit. */
  delivered(subscribers: number, seconds: number): void
  /** The post or comment of the event no longer exists. */
  skipped(): void
  /** A subscriber that resumed received an earlier event. */
  replayed(): void
}

export interface Member {
  readonly subscriber: Subscriber
  readonly client: string
  /** Decides which events are delivered. While it is undefined, events are held back. */
  accepts: ((event: Event) => boolean) | undefined
  readonly held: (() => void)[]
}

/** An event that a group has not delivered yet. */
export interface Pending {
  readonly event: Event
  /** When it was handed to the group, in milliseconds of `performance.now()`. */
  readonly at: number
  /** The delivery that waits for this group. Undefined if the group is late. */
  readonly delivery: Delivery | undefined
}

/** Subscribers with the same topic and the same selection, all with or all without positions. */
export class Group {
  readonly id: string
  readonly subscription: Subscription
  /** Whether the messages carry positions. */
  readonly positions: boolean
  readonly members = new Set<Member>()
  /** The number of members of each client. */
  readonly #clients = new Map<string, number>()
  /** The client on whose account the group's reads run in the fair queue: a member's client that has few groups. */
  owner: string
  readonly backlog: Pending[] = []
  /** Whether the backlog is being delivered. */
  isDelivering = false
  /** If true, deliveries do not wait for this group. */
  isLate = false
  /** The number of reads in a row that did not finish in time. */
  timedOutReads = 0
  /** When the read of its next event began, in milliseconds of `performance.now()`. */
  readingSince = Number.POSITIVE_INFINITY
  /** The group is far behind: it reads the events after this position from the log itself, until it has caught up. */
  behindAfter: Position | undefined
  #latest: Position | undefined

  constructor(id: string, subscription: Subscription, positions: boolean, owner: string) {
    this.id = id
    this.positions = positions
    this.subscription = subscription
    this.owner = owner
  }

  get isOver(): boolean {
    return this.members.size === 0
  }

  /** Adds a member. Returns whether it is the client's first member in the group. */
  add(member: Member): boolean {
    this.members.add(member)
    const count = this.#clients.get(member.client) ?? 0
    this.#clients.set(member.client, count + 1)
    return count === 0
  }

  /** Removes a member. Returns whether it was the client's last member in the group. */
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

  /**
   * Returns whether the group has not had this event before, and remembers it. An event that did not reach all groups
   * is handed to all of them again.
   */
  isNew({ position }: Event): boolean {
    if (this.#latest !== undefined && !isLater(position, this.#latest)) return false
    this.#latest = position
    return true
  }

  /** The group has no members any more, so no delivery should wait for it. */
  forgetBacklog(): void {
    for (const { delivery } of this.backlog.splice(0)) delivery?.told(this)
  }
}
