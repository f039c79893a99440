import { setTimeout as pause } from 'node:timers/promises'
import { AppError } from '../../core/errors.ts'
import { type Event, type Place, placeFromText, placeToText, topicOf } from '../../core/events.ts'
import { type Refusal, refusalFromCore } from '../errors.ts'
import { EventReader, type EventReaderParts, positionUnknown, tooExpensive } from './event-reader.ts'
import { Group, type Member, type Subscriber, type Subscription } from './group.ts'
import { type GroupLimits, Groups, groupName, move } from './groups.ts'
import { Sender, type SenderParts } from './sender.ts'

export type { Subscriber, Subscription } from './group.ts'

/** What a subscriber asks for in the `extensions` of its message. */
export interface Resume {
  /** Whether each message carries the position of its event. */
  readonly positions: boolean
  /** The position after which to begin, as the client sent it. Default: now. */
  readonly after?: unknown
}

export const fromNow: Resume = Object.freeze({ positions: false })

export interface FanOutParts extends GroupLimits, EventReaderParts, SenderParts {
  /** How far behind a live group may be before it is ended. */
  readonly mostLateMs?: number
}

/**
 * Delivers events to subscribers. Subscribers with the same topic and the same selection form a group, which is a cursor
 * over the log. An event is read once per group and becomes one message, which is written to every socket of the group.
 * Each group goes on at its own speed, so none waits for a slow one. A subscriber that begins at an earlier position is
 * in a group of its own until that has caught up; then it joins the live group.
 */
export class FanOut {
  readonly #parts: FanOutParts
  readonly #groups: Groups
  readonly #reader: EventReader
  readonly #sender: Sender
  /** The groups that are delivering, with the event that they are at. */
  readonly #running = new Map<Group, Event | undefined>()

  constructor(parts: FanOutParts) {
    this.#parts = parts
    this.#groups = new Groups(parts)
    this.#reader = new EventReader(parts)
    this.#sender = new Sender(this.#groups, parts)
  }

  get groups(): number {
    return this.#groups.size
  }

  get subscriptions(): number {
    return this.#groups.members
  }

  /** When the oldest event happened that a live group is still to deliver. */
  get undeliveredSince(): number | undefined {
    let oldest: number | undefined
    for (const [group, event] of this.#running)
      if (event !== undefined && this.#groups.isLive(group)) oldest = Math.min(oldest ?? event.at, event.at)
    return oldest
  }

  /** The end of the log, for a client that may want to begin there later. */
  async position(): Promise<string> {
    return placeToText(await this.#parts.log.end())
  }

  /** Subscribes from now on, or after a position. Returns the function that ends the subscription. */
  async subscribe(
    subscription: Subscription,
    subscriber: Subscriber,
    client: string,
    { positions, after }: Resume = fromNow,
  ): Promise<() => void> {
    const name = groupName(subscription, positions)
    this.#groups.take(client, name)
    try {
      const { position: from } = after === undefined ? await this.#parts.log.end() : await this.#known(after)
      // Checked after the position is known. If the post was deleted before, it is not found; if later, an event follows.
      if (!(await this.#exists(subscription, from))) throw postNotFound(subscription)
      const member: Member = { subscriber, client, from, group: undefined }
      this.#join(member, name, subscription, positions)
      return () => this.#groups.leave(member)
    } catch (error) {
      this.#groups.giveBack(client, name)
      throw error
    }
  }

  /** There is a new event. */
  wake(event: Event): void {
    const topic = topicOf(event)
    if (topic === undefined) return
    for (const group of this.#groups.listeningTo(topic)) {
      if (this.#running.has(group)) continue
      // Nothing has happened since it last delivered. Its cursor may also be ahead of the feed, for its first member.
      group.cursor = event.position - 1
      this.#start(group)
    }
  }

  async #known(after: unknown): Promise<Place> {
    const place = placeFromText(after)
    if (place === undefined || !(await this.#parts.log.keeps(place))) throw positionUnknown()
    return place
  }

  async #exists({ topic }: Subscription, from: number): Promise<boolean> {
    const { store, log } = this.#parts
    if (topic.kind === 'posts') return true
    return (await store.exists(topic.postId)) || log.tellsEndOf(topic.postId, from)
  }

  #join(member: Member, name: string, subscription: Subscription, positions: boolean): void {
    const { feed } = this.#parts
    const { from } = member
    const live = this.#groups.live(name)
    const isUpToDate = feed.reaches(from) && feed.next(subscription.topic, from) === undefined
    if (live !== undefined && (isUpToDate || (this.#running.has(live) && live.cursor <= from))) {
      move(member, live)
    } else if (isUpToDate) {
      const group = new Group(name, subscription, positions, from)
      move(member, group)
      this.#groups.goLive(group)
    } else {
      const group = this.#groups.catchingUp(name, subscription, positions, from)
      move(member, group)
      if (!this.#running.has(group)) this.#start(group)
    }
  }

  #start(group: Group): void {
    this.#running.set(group, undefined)
    group.delivered = 0
    this.#setGoal(group)
    void this.#run(group)
  }

  /** Delivers until the group has caught up or has no members any more. */
  async #run(group: Group): Promise<void> {
    const { feed } = this.#parts
    while (group.members.size > 0) {
      try {
        if (this.#isTooLate(group)) throw tooExpensive()
        const isRecent = group.page.length === 0 && feed.reaches(group.cursor)
        const event = isRecent ? feed.next(group.subscription.topic, group.cursor) : await this.#older(group)
        if (event !== undefined) await this.#deliver(group, event)
        else if (isRecent) {
          // Nothing happens in between: the next event either was found above or wakes the group.
          this.#running.delete(group)
          return this.#groups.goLive(group)
        }
      } catch (error) {
        if (!isOutage(error)) this.#sender.endAll(group, error)
        else {
          await pause(retryMs, undefined, { ref: false })
          this.#setGoal(group)
        }
      }
    }
    this.#running.delete(group)
  }

  /** The next event of a group that is further behind than the recent events, if there is one. */
  async #older(group: Group): Promise<Event | undefined> {
    const [next] = group.page
    if (next !== undefined) return next
    const { position } = this.#parts.feed
    group.page = await this.#reader.page(group, this.#clientOf(group), position)
    if (group.page.length === 0) this.#groups.advance(group, position)
    return group.page[0]
  }

  async #deliver(group: Group, event: Event): Promise<void> {
    const isLive = this.#groups.isLive(group)
    if (!isLive) {
      const unread = this.#slowest(group)
      if (unread !== undefined) return unread
    }
    this.#running.set(group, event)
    const begun = performance.now()
    const message = await this.#reader.message(group, this.#clientOf(group), event)
    this.#groups.advance(group, event.position) // from now on, a new member that wants this event gets it elsewhere
    group.page = group.page.slice(1)
    if (message === undefined) this.#sender.endAll(group, undefined)
    else if (message === 'gone') this.#parts.observer.skipped()
    else await this.#sender.send(group, event, message)
    // Who was away for long, or says so again and again, leaves most of the time to others.
    const isLong = !isLive && ++group.delivered > quickEvents
    if (isLong) await pause(Math.min(mostPauseMs, 9 * (performance.now() - begun)), undefined, { ref: false })
  }

  /**
   * A group that catches up waits for its only member to read. Of several members, those that do not read go on in
   * groups of their own.
   */
  #slowest(group: Group): Promise<void> | undefined {
    for (const member of group.members) {
      const unread = member.subscriber.ready()
      if (unread === undefined) continue
      this.#groups.close(group) // nobody joins it to wait too
      if (group.members.size === 1) return unread
      const own = new Group(group.name, group.subscription, group.positions, group.cursor)
      move(member, own)
      this.#start(own)
    }
    return undefined
  }

  /** The client on whose account a group reads: of some members, the one with the fewest subscriptions. */
  #clientOf({ members }: Group): string {
    const some = [...members.values().take(someMembers)]
    const fewer = (one: Member, other: Member) =>
      this.#groups.sizeOf(other.client) < this.#groups.sizeOf(one.client) ? other : one
    return some.length === 0 ? '' : some.reduce(fewer).client
  }

  /** Whether a live group has not reached for long what happened before. An outage of the store does not count. */
  #isTooLate(group: Group): boolean {
    if (!this.#groups.isLive(group)) return false
    if (group.cursor >= group.goal.position) this.#setGoal(group)
    return performance.now() - group.goal.setAt > (this.#parts.mostLateMs ?? mostLateMs)
  }

  #setGoal(group: Group): void {
    group.goal = { position: this.#parts.feed.position, setAt: performance.now() }
  }
}

function isOutage(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable'
}

function postNotFound({ key }: Subscription): Refusal {
  return refusalFromCore(new AppError('not-found', 'Post not found'), [key])
}

const mostLateMs = 60_000
const retryMs = 250
/** Events that a group catches up without a pause. Few clients need more. */
const quickEvents = 500
/** Longer pauses would leave clients behind that share an address, if events come fast. */
const mostPauseMs = 10
const someMembers = 8
