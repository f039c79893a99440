import { hash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { type Event, nameOf, type Topic } from '../../core/events.ts'
import type { Show } from '../../core/store.ts'
import { Counts } from '../../lib/counts.ts'
import { inSlices } from '../../lib/pace.ts'
import { type Refusal, refusal } from '../errors.ts'
import type { EventMessage } from './event-message.ts'

/** A subscription: the topic, and what to show of the post or comment of each event. */
export interface Subscription extends Show {
  readonly topic: Topic
  readonly key: string
}

/** Receives the messages of a subscription. Its methods do not throw. */
export interface Subscriber {
  /** Resolves when its client has read most of what was sent. Undefined if it has. */
  ready(): Promise<void> | undefined
  next(message: EventMessage): void
  /** The topic has ended, or the subscription is refused. */
  end(refused: Refusal | undefined): void
}

export interface Member {
  readonly subscriber: Subscriber
  readonly client: string
  /** It gets the events after this position. */
  from: number
  /** The group that it is in. Undefined if it has left. */
  group: Group | undefined
}

/** Subscribers with the same topic and the same selection, all with or all without positions, and one cursor. */
export class Group {
  readonly name: string
  readonly subscription: Subscription
  readonly positions: boolean
  readonly members = new Set<Member>()
  /** All events up to this position were delivered. While the group waits for events, this may be an older position. */
  cursor: number
  /** The next events, if they were read from the log because they are no longer among the recent ones. */
  page: readonly Event[] = []
  /** How long its reads take, on average, the latest ones above all. One without a read could take long. */
  readMs = 1.5 * longReadMs
  /** The characters of its latest message. */
  textLength = 0
  /** The number of reads in a row that did not finish in time. */
  slowReads = 0
  /** A position that it must reach soon after the time, in milliseconds of `performance.now()`. */
  goal = { position: 0, setAt: 0 }

  constructor(name: string, subscription: Subscription, positions: boolean, cursor: number) {
    this.name = name
    this.subscription = subscription
    this.positions = positions
    this.cursor = cursor
  }

  /** Takes in a member, who leaves the group that it is in. */
  add(member: Member): void {
    member.group?.members.delete(member)
    member.group = this
    this.members.add(member)
  }

  /** Sends the message of an event to all members that want it. Returns how many do. */
  async send({ position }: Event, message: EventMessage): Promise<number> {
    let reached = 0
    let done = 0
    let end = performance.now() + sliceMs
    for (const { from, subscriber } of this.members) {
      if (position > from) {
        subscriber.next(message)
        reached++
      }
      // There may be many members, so other work gets its turn in between.
      if (++done % membersTogether === 0 && performance.now() > end) {
        await turn()
        end = performance.now() + sliceMs
      }
    }
    return reached
  }
}

/** Identifies the topic, the selection and whether there are positions. A hash, because a selection can be long. */
export function groupName({ topic, selection, values }: Subscription, positions: boolean): string {
  return hash('sha256', JSON.stringify([topic, selection, values, positions]), 'base64')
}

export interface GroupLimits {
  /** Maximum number of different subscriptions of one client, and of all clients together. */
  readonly groupsPerClient: number
  readonly groups: number
}

/** The live group of each different subscription, and how often each subscription is in use. */
export class Groups {
  readonly #limits: GroupLimits
  readonly live = new Map<string, Group>()
  readonly #listening = new Map<string, Set<Group>>()
  /** The uses of each subscription, by the name of its group, and those by each client. */
  readonly #uses = new Counts()
  readonly #usesOf = new Counts()
  /** How many different subscriptions each client has. */
  readonly #different = new Counts()
  members = 0

  constructor(limits: GroupLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#uses.size
  }

  /** Counts one more use of a subscription. Throws if the client or the instance has too many different ones. */
  take(client: string, name: string): void {
    const { groups, groupsPerClient } = this.#limits
    const own = `${client} ${name}`
    if (this.#usesOf.of(own) === 0 && this.#different.of(client) >= groupsPerClient)
      throw refusal(tooMany, `At most ${groupsPerClient} different subscriptions of one client at a time.`)
    if (this.#uses.of(name) === 0 && this.size >= groups)
      throw refusal(tooMany, 'There are too many different subscriptions. Try again later.')
    if (this.#usesOf.add(own) === 1) this.#different.add(client)
    this.#uses.add(name)
    this.members++
  }

  giveBack(client: string, name: string): void {
    if (this.#usesOf.add(`${client} ${name}`, -1) === 0) this.#different.add(client, -1)
    this.#uses.add(name, -1)
    this.members--
  }

  isLive(group: Group): boolean {
    return this.live.get(group.name) === group
  }

  *listeningTo(topics: readonly string[]): Iterable<Group> {
    for (const topic of topics) yield* this.#listening.get(topic) ?? []
  }

  /** Makes a group the live one of its subscription. If there is one, its members join that. */
  goLive(group: Group): void {
    const live = this.live.get(group.name)
    if (live === group) return
    if (live !== undefined) {
      for (const member of group.members) {
        member.from = group.cursor
        live.add(member)
      }
      return
    }
    this.live.set(group.name, group)
    const topic = nameOf(group.subscription.topic)
    this.#listening.set(topic, (this.#listening.get(topic) ?? new Set()).add(group))
  }

  leave(member: Member): void {
    const { group } = member
    if (group === undefined) return
    group.members.delete(member)
    member.group = undefined
    this.giveBack(member.client, group.name)
    if (group.members.size > 0 || !this.isLive(group)) return
    this.live.delete(group.name)
    const topic = nameOf(group.subscription.topic)
    const listening = this.#listening.get(topic)
    listening?.delete(group)
    if (listening?.size === 0) this.#listening.delete(topic)
  }

  /** Ends the subscriptions of all members: the topic has ended, or the selection cannot be delivered. */
  end(group: Group, refused: Refusal | undefined): Promise<void> {
    return inSlices(group.members, member => {
      this.leave(member)
      member.subscriber.end(refused)
    })
  }
}

const tooMany = 'SUBSCRIPTION_LIMIT_EXCEEDED'

/** Most reads take a few milliseconds, and the longest that are admitted a tenth of a second. */
export const longReadMs = 50
/** Maximum milliseconds of sending before other work gets its turn. */
const sliceMs = 5
/** How many members get a message before the next look at the time. With ids of their own, each gets a copy. */
const membersTogether = 16
