import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { AppError, answerTooLarge, isOutage } from '../../core/errors.ts'
import type { Event, EventLog, Place, RecentEvents } from '../../core/events.ts'
import { nameOf, placeToText, subjectOf, topicsOf } from '../../core/events.ts'
import { Queue } from '../../core/queue.ts'
import type { PostStore } from '../../core/store.ts'
import type { Metrics } from '../../http/metrics.ts'
import { during } from '../../lib/waits.ts'
import { type Refusal, refusal, refusalFromCore, reportedRefusal } from '../errors.ts'
import { EventMessage } from './event-message.ts'
import { Group, type GroupLimits, Groups, groupName, longReadMs, type Subscriber, type Subscription } from './groups.ts'
import { Joins, positionUnknown } from './joins.ts'
import type { Resume } from './messages.ts'

export interface FanOutParts extends GroupLimits {
  readonly store: PostStore
  readonly log: EventLog
  readonly feed: RecentEvents
  /** How many reads run at once. Each group has at most one. */
  readonly readsAtOnce: number
  /** How long one read may take, in milliseconds. */
  readonly readMs: number
  readonly observer: Pick<Metrics['sockets'], 'delivered' | 'skipped' | 'replayed'>
  /** Runs a delivery, which resolves with the number of subscribers that it has reached. */
  readonly delivering: (event: Event, deliver: () => Promise<number>) => Promise<void>
  /** By the clock of the store. */
  readonly now: () => number
  readonly report: (error: AppError) => void
}

/**
 * Delivers events to subscribers. Subscribers with the same topic and the same selection form a group, which is a cursor
 * over the log. An event is read once per group and becomes one message, which is written to every socket of the group.
 * Each group goes on at its own speed, so none waits for a slow one. A subscriber that begins at an earlier position is
 * a group of its own until that has caught up; then it joins the live group.
 */
export class FanOut {
  readonly #parts: FanOutParts
  readonly groups: Groups
  readonly joins: Joins
  readonly #reads: Queue
  /** For groups whose reads take long or give long texts, and for new ones: hundreds can wait, and others not behind them. */
  readonly #longReads: Queue
  readonly #deletions = new Queue({ atOnce: groupsInTurn })
  /** The groups that are delivering, with the event that they are at. */
  readonly #running = new Map<Group, Event | undefined>()

  constructor(parts: FanOutParts) {
    this.#parts = parts
    this.groups = new Groups(parts)
    this.joins = new Joins(parts)
    this.#reads = new Queue({ atOnce: parts.readsAtOnce })
    this.#longReads = new Queue({ atOnce: Math.min(2, parts.readsAtOnce) })
  }

  /** When the oldest event happened that a live group is still to deliver. */
  get undeliveredSince(): number | undefined {
    let oldest: number | undefined
    for (const [group, event] of this.#running)
      if (event !== undefined && this.groups.isLive(group)) oldest = Math.min(oldest ?? event.at, event.at)
    return oldest
  }

  /** Subscribes from a place on, after a position, or from now on. Returns the function that ends the subscription. */
  async subscribe(
    subscription: Subscription,
    subscriber: Subscriber,
    client: string,
    { positions, after }: Resume = { positions: false },
    begin?: Place,
  ): Promise<() => void> {
    const name = groupName(subscription, positions)
    this.groups.take(client, name)
    try {
      const { position: from } =
        after === undefined ? (begin ?? (await this.joins.end())) : await this.joins.placeIn(after)
      // Checked after the position is known. If the post was deleted before, it is not found; if later, an event follows.
      if (!(await this.joins.exists(subscription.topic, from)))
        throw refusalFromCore(new AppError('not-found', 'Post not found'), [subscription.key])
      const member = { subscriber, client, from, group: undefined }
      const live = this.groups.live.get(name)
      const isAhead = live !== undefined && live.cursor <= from
      const group = isAhead ? live : new Group(name, subscription, positions, from)
      group.add(member)
      if (!isAhead) {
        this.#running.set(group, undefined)
        void during(undefined, () => this.#startAll([group]))
      }
      return () => this.groups.leave(member)
    } catch (error) {
      this.groups.giveBack(client, name)
      throw error
    }
  }

  wake(event: Event): void {
    const woken = [...this.groups.listeningTo(topicsOf(event))].filter(group => !this.#running.has(group))
    for (const group of woken) {
      // Nothing has happened since it last delivered. Its cursor may also be ahead of the feed, for its first member.
      group.cursor = event.position - 1
      this.#running.set(group, event)
    }
    void during(undefined, () => this.#startAll(woken))
  }

  /** There may be thousands of groups. Others are served between some of them. */
  async #startAll(groups: readonly Group[]): Promise<void> {
    for (const [at, group] of groups.entries()) {
      if (at % groupsInTurn === groupsInTurn - 1) await turn()
      this.#setGoal(group)
      void this.#run(group)
    }
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
          return this.groups.goLive(group)
        }
      } catch (error) {
        if (!isOutage(error)) await this.groups.end(group, reportedRefusal(error, this.#parts.report))
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
    const { log, feed } = this.#parts
    const { position } = feed
    const { cursor, subscription } = group
    const name = [nameOf(subscription.topic), cursor, position].join()
    const events = await this.#reads.share(name, () => log.ofTopic(subscription.topic, cursor, position))
    if (events === undefined) throw positionUnknown()
    group.page = events
    if (events.length === 0) group.cursor = position
    return events[0]
  }

  async #deliver(group: Group, event: Event): Promise<void> {
    if (!this.groups.isLive(group)) {
      // Who catches up gets no more than it reads.
      const [member] = group.members
      const reading = member?.subscriber.ready()
      if (reading !== undefined) return reading
    }
    this.#running.set(group, event)
    await this.#parts.delivering(event, () => this.#send(group, event))
  }

  async #send(group: Group, event: Event): Promise<number> {
    const { observer, now } = this.#parts
    const subject = subjectOf(event, group.subscription.topic)
    const data = subject === undefined ? undefined : await this.#dataAbout(group, subject)
    group.cursor = event.position // from now on, a new member that wants this event gets it elsewhere
    group.page = group.page.slice(1)
    if (subject === undefined) await this.groups.end(group, undefined)
    else if (data === undefined) observer.skipped()
    if (data === undefined) return 0
    const message = new EventMessage(data, group.positions ? placeToText(event) : undefined)
    const isLive = this.groups.isLive(group)
    const reached = await group.send(event, message)
    if (isLive && reached > 0) observer.delivered(reached, Math.max(0, now() - event.at) / 1000)
    else if (reached > 0) observer.replayed()
    return reached
  }

  /** Of what is deleted, subscribers get the id, and nothing is read. So thousands at once would leave no turn to others. */
  async #dataAbout(group: Group, subject: number): Promise<string | undefined> {
    const { topic, key } = group.subscription
    if (topic.kind === 'post-deleted' || topic.kind === 'comment-deleted') {
      await this.#deletions.run(turn)
      return `{"${key}":"${subject}"}`
    }
    const isLong = group.readMs > longReadMs || group.textLength > longText
    const reads = isLong ? this.#longReads : this.#reads
    // Many groups may catch up at once with the same events.
    return reads.share(`${group.name} ${subject}`, () => this.#read(group, subject))
  }

  /**
   * Reads what a group has selected of a post or comment. Undefined if that no longer exists. Throws if its reads again
   * and again do not finish in time, while the store answers others.
   */
  async #read(group: Group, subject: number): Promise<string | undefined> {
    const { store, feed, readMs } = this.#parts
    const { selection, values, id } = group.subscription
    const begun = performance.now()
    try {
      const data = await store.selectOne(selection, values.with(id, subject))
      group.textLength = data?.length ?? 0
      if (group.textLength > mostEventText) throw answerTooLarge()
      if (performance.now() - begun <= readMs) group.slowReads = 0
      else if (++group.slowReads >= mostSlowReads) throw tooExpensive()
      return data
    } catch (error) {
      if (isOutage(error) && feed.hasAnsweredSince(begun) && ++group.slowReads >= mostSlowReads) throw tooExpensive()
      throw error
    } finally {
      group.readMs = (group.readMs + performance.now() - begun) / 2
    }
  }

  /** Whether a live group has not reached for long what happened before. An outage of the store does not count. */
  #isTooLate(group: Group): boolean {
    if (!this.groups.isLive(group)) return false
    if (group.cursor >= group.goal.position) this.#setGoal(group)
    return performance.now() - group.goal.setAt > mostLateMs
  }

  #setGoal(group: Group): void {
    group.goal = { position: this.#parts.feed.position, setAt: performance.now() }
  }
}

function tooExpensive(): Refusal {
  return refusal('SUBSCRIPTION_TOO_EXPENSIVE', 'What the subscription asks for could not be read in time.')
}

/** Characters. One change can be an event for hundreds of groups of one client, each with an answer of its own. */
const mostEventText = 256 * 1024
/** Such a text takes more than a millisecond to read and to send. */
const longText = 16 * 1024
const groupsInTurn = 64
const mostLateMs = 60_000
const retryMs = 250
/** Two slow reads may happen when the process was stopped for a while, or when the store has just come back. */
const mostSlowReads = 3
