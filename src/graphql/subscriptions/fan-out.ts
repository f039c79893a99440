import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { AppError, fault } from '../../core/errors.ts'
import { type Event, isAfter, isLater, type Position, placeFromText } from '../../core/events.ts'
import { FairQueue } from '../../core/fair-queue.ts'
import { isSameTopic, type Topic, topicOf } from '../../core/posts/topics.ts'
import { type Refusal, refusalFromCore } from '../errors.ts'
import { SharedMessage } from '../socket/shared-message.ts'
import { Delivery } from './delivery.ts'
import { EventReader, type EventReaderParts, type Message, tooExpensive } from './event-reader.ts'
import type { Group, Member, Pending, Subscriber, Subscription } from './group.ts'
import { type GroupLimits, Groups } from './groups.ts'
import { type CatchUpParts, catchUp, fromNow, positionUnknown, type Resume, whileUnavailable } from './resume.ts'

export type { Subscriber, Subscription } from './group.ts'

export interface FanOutObserver {
  /** An event reached this many subscribers of a group, this many seconds after its commit. */
  delivered(subscribers: number, seconds: number): void
  /** The post or comment of the event no longer exists. */
  skipped(): void
  /** A subscriber that resumed received an earlier event. */
  replayed(): void
}

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
  /** For the reads of subscribers that resume. */
  readonly #catchUps = new FairQueue({ atOnce: 4, perClient: 2 })
  /** Limits the messages of each client that are read for subscribers that resume, and not sent yet. */
  readonly #replays = new FairQueue({ atOnce: Number.POSITIVE_INFINITY, perClient: 2 })
  #underWay: readonly Delivery[] = []
  /** The last event that was handed to the groups. */
  #latest: Position | undefined

  constructor(parts: FanOutParts) {
    this.#parts = parts
    this.#groups = new Groups(parts)
    const onOutage = (error: AppError) => {
      for (const delivery of this.#underWay) delivery.fail(error)
    }
    this.#reader = new EventReader({ ...parts, onOutage })
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
      for (const tell of member.held.splice(0)) tell()
      return leave
    } catch (error) {
      leave()
      throw error
    }
  }

  /**
   * Tells a subscriber first what happened after a position. Meanwhile it is a member of its group that accepts nothing.
   */
  async #resume(subscription: Subscription, subscriber: Subscriber, client: string, after: unknown) {
    const { log } = this.#parts
    const place = placeFromText(after)
    if (place === undefined || !(await log.keeps(place))) throw positionUnknown()
    const member: Member = { subscriber, client, accepts: () => false, held: [] }
    const group = this.#groups.join(subscription, true, member)
    const parts: CatchUpParts = {
      log,
      topic: subscription.topic,
      inTurn: read => this.#catchUps.run(client, read),
      latest: () => this.#latest,
      deliver: event => this.#replay(event, group, member),
      isOver: () => !group.members.has(member),
    }
    const caughtUp = async () => {
      const position = await catchUp(parts, place)
      if (position === undefined) return
      member.accepts = event => isLater(event.position, position)
      const exists = await whileUnavailable(() => this.#exists(subscription.topic), parts.isOver)
      if (!exists) this.#dismiss(group, member, postNotFound(subscription))
    }
    caughtUp().catch(error => this.#dismiss(group, member, this.#reader.refusalOf(error)))
    return () => this.#groups.leave(group, member)
  }

  /** Delivers an earlier event to one member. Returns whether its subscription goes on. */
  async #replay(event: Event, group: Group, member: Member): Promise<boolean> {
    for (;;) {
      await member.subscriber.ready()
      const outcome = await this.#replays.run(member.client, () => this.#replayNow(event, group, member))
      if (outcome !== 'later') return outcome
    }
  }

  /** Reads the message only if its client is ready for it: messages that wait would take memory. */
  async #replayNow(event: Event, group: Group, member: Member): Promise<boolean | 'later'> {
    const isOver = () => !group.members.has(member)
    if (isOver()) return false
    if (member.subscriber.ready() !== undefined) return 'later'
    const message = await this.#reader.messageFor(group, event)
    if (isOver()) return false
    // Another message may have been sent meanwhile.
    if (message === 'again' || member.subscriber.ready() !== undefined) return 'later'
    if (message === 'gone') this.#parts.observer.skipped()
    else if (this.#send(message, group, member)) this.#parts.observer.replayed()
    return !isOver()
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
      if (!group.isTelling) this.#work(group).catch(error => this.#end(group, this.#reader.refusalOf(error)))
    }
    delivery.start(promptMs)
    return delivery
  }

  /** The log keeps what memory should not. A group whose reads do not end is no use to wait for. */
  #leaveBehind(group: Group): void {
    if (performance.now() - group.readingSince > 2 * this.#parts.readMs) this.#end(group, tooExpensive())
    else group.behindAfter = group.backlog.at(-1)?.event.position
  }

  #groupsFor(event: Event): readonly Group[] {
    const topic = topicOf(event)
    return topic === undefined ? [] : this.#groups.listeningTo(topic)
  }

  /** Delivers the backlog of a group. */
  async #work(group: Group): Promise<void> {
    group.isTelling = true
    do {
      for (let pending = group.backlog[0]; pending !== undefined; pending = group.backlog[0]) {
        group.readingSince = performance.now()
        const message = await this.#reader.messageFor(group, pending.event)
        if (message === 'again' || group.isOver) continue
        group.backlog.shift()
        await this.#tell(group, pending.event, message)
        this.#settle(group, pending)
      }
      group.readingSince = Number.POSITIVE_INFINITY
    } while (!group.isOver && (await this.#catchUp(group)))
    group.isTelling = false
  }

  /** Reads the next events of a group that is far behind from the log. Returns whether there may be more to do. */
  async #catchUp(group: Group): Promise<boolean> {
    const { behindAfter } = group
    if (behindAfter === undefined) return false
    try {
      const { events } = await this.#parts.log.after(behindAfter)
      const [first] = events
      if (first !== undefined && this.#parts.now() - first.at > mostLateMs) {
        this.#end(group, tooExpensive())
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

  async #tell(group: Group, event: Event, message: Message): Promise<void> {
    if (message === 'gone') return this.#parts.observer.skipped()
    let reached = 0
    let told = 0
    const untilLook = message instanceof SharedMessage && message.bytes > largeMessage ? 1 : 64
    let end = performance.now() + sliceMs
    for (const member of group.members) {
      if (member.accepts === undefined) member.held.push(() => this.#tellLate(event, group, member, message))
      else if (this.#tellMember(event, group, member, message)) reached++
      // There may be many members or a large message, so other work gets its turn in between.
      if (++told % untilLook === 0 && performance.now() > end) {
        await turn()
        end = performance.now() + sliceMs
      }
    }
    this.#count(event, reached)
  }

  #tellLate(event: Event, group: Group, member: Member, message: Message): void {
    this.#count(event, this.#tellMember(event, group, member, message) ? 1 : 0)
  }

  #count(event: Event, reached: number): void {
    const { observer, now } = this.#parts
    if (reached > 0) observer.delivered(reached, Math.max(0, now() - event.at) / 1000)
  }

  #tellMember(event: Event, group: Group, member: Member, message: Message): boolean {
    return member.accepts?.(event) === true && this.#send(message, group, member)
  }

  /** Returns whether a message was sent. */
  #send(message: Message, group: Group, member: Member): boolean {
    if (!(message instanceof SharedMessage)) {
      this.#dismiss(group, member, message === 'gone' ? undefined : message)
      return false
    }
    try {
      member.subscriber.next(message)
      return true
    } catch (error) {
      this.#dismiss(group, member, this.#reader.refusalOf(error))
      return false
    }
  }

  /** Ends a member's subscription, because the post is gone or the selection cannot be delivered. */
  #dismiss(group: Group, member: Member, reason: Refusal | undefined): void {
    this.#groups.leave(group, member)
    try {
      if (reason === undefined) member.subscriber.complete()
      else member.subscriber.fail(reason)
    } catch (error) {
      this.#parts.report(fault(error))
    }
  }

  #end(group: Group, reason: Refusal): void {
    for (const member of group.members) this.#dismiss(group, member, reason)
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
/** Maximum milliseconds of sending before other work gets its turn. */
const sliceMs = 5
/** Bytes of a message of which each copy takes a noticeable time. */
const largeMessage = 64 * 1024

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
