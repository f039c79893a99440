import { setTimeout as pause } from 'node:timers/promises'
import { AppError } from '../../core/errors.ts'
import { type Event, isAfter, isLater, type Position } from '../../core/events.ts'
import { isSameTopic, type Topic, topicOf } from '../../core/posts/topics.ts'
import { type Refusal, refusalFromCore } from '../errors.ts'
import { Delivery } from './delivery.ts'
import { EventReader, type EventReaderParts, tooExpensive } from './event-reader.ts'
import type { FanOutObserver, Group, Member, Pending, Subscriber, Subscription } from './group.ts'
import { type GroupLimits, Groups } from './groups.ts'
import { Replays } from './replays.ts'
import { fromNow, type Resume, whileUnavailable } from './resume.ts'
import { Sender } from './sender.ts'

export type { FanOutObserver, Subscriber, Subscription } from './group.ts'

export interface FanOutParts extends GroupLimits, Omit<EventReaderParts, 'onOutage'> {
  readonly observer: FanOutObserver
  readonly now: () => number
}

/**
 * Delivers events to subscribers. Subscribers with the same topic and the same selection form a group. An event is read
 * once per group and becomes one message, which is written to every socket of the group. Each group gets its events in
 * order and at its own speed: a group whose reads are slow or fail does not delay the others.
 */
export class FanOut {
  readonly #parts: FanOutParts
  readonly #groups: Groups
  readonly #reader: EventReader
  readonly #sender: Sender
  readonly #replays: Replays
  #underWay: readonly Delivery[] = []
  /** The last event that was handed to the groups. */
  #latest: Position | undefined

  constructor(parts: FanOutParts) {
    this.#parts = parts
    this.#groups = new Groups(parts)
    const onOutage = (error: AppError) => {
      for (const delivery of this.#underWay) delivery.fail(error)
    }
    const reader = new EventReader({ ...parts, onOutage })
    const { observer, report, now, log } = parts
    const refusalOf = (error: unknown) => reader.refusalOf(error)
    this.#reader = reader
    this.#sender = new Sender({ groups: this.#groups, observer, refusalOf, report, now })
    this.#replays = new Replays({ log, reader, sender: this.#sender, latest: () => this.#latest, observer })
  }

  get groups(): number {
    return this.#groups.size
  }

  get subscriptions(): number {
    return this.#groups.members
  }

  /** Subscribes from now on, or after a position. Returns the function that ends the subscription. */
  async subscribe(
    subscription: Subscription,
    subscriber: Subscriber,
    client: string,
    { positions, after }: Resume = fromNow,
  ): Promise<() => void> {
    if (after !== undefined) return this.#resume(subscription, subscriber, client, after)
    const member: Member = { subscriber, client, accepts: undefined, held: [] }
    const group = this.#groups.join(subscription, positions, member)
    const leave = () => this.#groups.leave(group, member)
    try {
      // Get the moment only after joining. Events that arrive in between are held back, then delivered or dropped.
      const since = await this.#parts.log.now()
      // Check the post only after that. If it was deleted before, it is not found; if later, an event follows.
      if (!(await this.#exists(subscription.topic))) throw postNotFound(subscription)
      member.accepts = event => isAfter(event, since)
      for (const send of member.held.splice(0)) send()
      return leave
    } catch (error) {
      leave()
      throw error
    }
  }

  /** Subscribes after a position. Until the subscriber has caught up, it is a member that accepts nothing. */
  async #resume(subscription: Subscription, subscriber: Subscriber, client: string, after: unknown) {
    const place = await this.#replays.placeOf(after)
    const member: Member = { subscriber, client, accepts: () => false, held: [] }
    const group = this.#groups.join(subscription, true, member)
    const isOver = () => !group.members.has(member)
    const caughtUp = async () => {
      if (!(await this.#replays.catchUp(group, member, place))) return
      const exists = await whileUnavailable(() => this.#exists(subscription.topic), isOver)
      if (!exists) this.#sender.dismiss(group, member, postNotFound(subscription))
    }
    caughtUp().catch(error => this.#sender.dismiss(group, member, this.#reader.refusalOf(error)))
    return () => this.#groups.leave(group, member)
  }

  /**
   * Gives each event to the groups that listen to it, and yields it when all groups that are not late have received it.
   * Throws if the store is unavailable. Groups that already have the event deliver it when the store is back.
   */
  async *deliver(events: readonly Event[]): AsyncGenerator<Event, void, undefined> {
    for (const batch of batchesOf(events)) {
      const deliveries = batch.map(event => ({ event, delivery: this.#handOver(event) }))
      this.#underWay = deliveries.map(({ delivery }) => delivery)
      for (const { event, delivery } of deliveries) {
        await delivery.done
        yield event
      }
    }
  }

  /** The log has lost events and uses their positions again. */
  forgetPositions(): void {
    this.#latest = undefined
  }

  async #exists(topic: Topic): Promise<boolean> {
    return topic.kind === 'posts' || (await this.#parts.store.exists(topic.postId))
  }

  #handOver(event: Event): Delivery {
    const delivery = new Delivery()
    this.#latest = event.position
    const at = performance.now()
    for (const group of this.#groupsFor(event)) {
      if (!group.isNew(event) || group.behindAfter !== undefined) continue
      if (group.backlog.length >= mostBehind) {
        this.#leaveBehind(group)
        continue
      }
      if (!group.isLate) delivery.waitFor(group)
      group.backlog.push({ event, at, delivery: group.isLate ? undefined : delivery })
      if (!group.isDelivering)
        this.#work(group).catch(error => this.#sender.endAll(group, this.#reader.refusalOf(error)))
    }
    delivery.start(promptMs)
    return delivery
  }

  /** The log keeps what memory should not. A group whose reads do not end is no use to wait for. */
  #leaveBehind(group: Group): void {
    if (performance.now() - group.readingSince > 2 * this.#parts.readMs) this.#sender.endAll(group, tooExpensive())
    else group.behindAfter = group.backlog.at(-1)?.event.position
  }

  #groupsFor(event: Event): readonly Group[] {
    const topic = topicOf(event)
    return topic === undefined ? [] : this.#groups.listeningTo(topic)
  }

  /** Delivers the backlog of a group. */
  async #work(group: Group): Promise<void> {
    group.isDelivering = true
    do {
      for (let pending = group.backlog[0]; pending !== undefined; pending = group.backlog[0]) {
        group.readingSince = performance.now()
        const message = await this.#reader.messageFor(group, pending.event)
        if (message === 'again' || group.isOver) continue
        group.backlog.shift()
        if (message === 'gone') this.#parts.observer.skipped()
        else await this.#sender.sendToAll(group, pending.event, message)
        this.#settle(group, pending)
      }
      group.readingSince = Number.POSITIVE_INFINITY
    } while (!group.isOver && (await this.#catchUp(group)))
    group.isDelivering = false
  }

  /** Reads the next events of a group that is far behind from the log. Returns whether there may be more to do. */
  async #catchUp(group: Group): Promise<boolean> {
    const { behindAfter } = group
    if (behindAfter === undefined) return false
    try {
      const { events } = await this.#parts.log.after(behindAfter)
      const [first] = events
      if (first !== undefined && this.#parts.now() - first.at > mostLateMs) {
        this.#sender.endAll(group, tooExpensive())
        return false
      }
      const at = performance.now()
      for (const event of events) {
        group.isNew(event) // it is not to be handed over once more
        if (isSameTopic(group.subscription.topic, topicOf(event)))
          group.backlog.push({ event, at, delivery: undefined })
      }
      const position = events.at(-1)?.position ?? behindAfter
      const hasAll = this.#latest === undefined || !isLater(this.#latest, position)
      group.behindAfter = hasAll ? undefined : position
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unavailable') throw error
      await pause(retryMs, undefined, { ref: false })
    }
    return true
  }

  #settle(group: Group, { at, delivery }: Pending): void {
    const isPrompt = group.backlog.length === 0 && performance.now() - at < promptMs
    if (isPrompt) group.isLate = false
    delivery?.told(group)
  }
}

/** How many events are handed to the groups before the first of them is delivered. */
const ahead = 8
/** How long the next events wait for groups that have not received this one. */
const promptMs = 100
/** Events that wait in memory for one group. More than are read from the log together. */
const mostBehind = 1000
/** A group that is further behind than this is ended. */
const mostLateMs = 60_000
const retryMs = 250

/**
 * Splits events into batches. A revocation is the last event of its batch, because the sockets of a revoked user must
 * be closed before any later event is delivered.
 */
function* batchesOf(events: readonly Event[]): Generator<readonly Event[]> {
  let batch: Event[] = []
  for (const event of events) {
    batch.push(event)
    if (batch.length < ahead && event.kind !== 'user-revoked') continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

function postNotFound({ key }: Subscription): Refusal {
  return refusalFromCore(new AppError('not-found', 'Post not found'), [key])
}
