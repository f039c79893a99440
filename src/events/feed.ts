import { setImmediate as turn } from 'node:timers/promises'
import { isOutage } from '../core/errors.ts'
import {
  type Event,
  type EventBus,
  type EventLog,
  nameOf,
  type Place,
  type RecentEvents,
  type Topic,
  topicsOf,
} from '../core/events.ts'
import type { StoreObserver } from '../core/ports.ts'
import { inRounds } from './in-rounds.ts'

export interface FeedParts {
  readonly log: EventLog
  readonly bus: EventBus
  readonly observer: Pick<StoreObserver, 'trouble'>
}

export interface FeedListener {
  /** There is a new event. */
  wake(event: Event): void
  /** Closes the sockets of a user whose tokens were revoked. Later events wait for it. */
  revoke(userId: number): Promise<void>
  /** The log has lost events. The positions that subscribers have are no longer valid. */
  lose(): void
}

/**
 * Reads the event log from now on, each event once and in order, and keeps the latest ones in memory. It looks into the
 * log when the bus says so, and also once a second: in case a notification got lost, or the store did not answer.
 */
export class Feed implements RecentEvents, AsyncDisposable {
  readonly #parts: FeedParts
  #listener: FeedListener | undefined
  #place: Place = { position: 0, at: 0 }
  /** The latest events, all after `#from`, with the names of their topics. */
  readonly #recent: { readonly event: Event; readonly topics: readonly string[] }[] = []
  #from = 0
  #running: Promise<void> | undefined
  readonly #ask = inRounds(() => {
    this.#running = this.#round()
    return this.#running
  }, pauseMs)
  #timer: NodeJS.Timeout | undefined
  #isStopped = false
  #hasWritten = false
  /** Whether events were read since the last announcement. They may be this thread's own, read before it knew of them. */
  #hasUnannounced = false
  #answeredAt = Number.NEGATIVE_INFINITY
  /** By how much the clock of the store is ahead of `performance.now()`. */
  #ahead = 0
  /** When the oldest event happened that is known and could not be read yet, by the clock of the store. */
  waitingSince: number | undefined

  constructor(parts: FeedParts) {
    this.#parts = parts
  }

  /** Begins at the end of the log. */
  async start(listener: FeedListener): Promise<void> {
    this.#listener = listener
    const begun = performance.now()
    const end = await this.#parts.log.end()
    this.#setClock(end.readAt ?? 0, begun)
    this.#beginAt(end)
    this.#parts.bus.listen(writtenHere => this.look(writtenHere))
    this.#timer = setInterval(() => this.look(), pollMs).unref()
  }

  get position(): number {
    return this.#place.position
  }

  reaches(position: number): boolean {
    return position >= this.#from
  }

  next(topic: Topic, after: number): Event | undefined {
    const name = nameOf(topic)
    // From the end, because most subscribers wait for the latest event.
    const before = this.#recent.findLastIndex(({ event }) => event.position <= after)
    return this.#recent.slice(before + 1).find(({ topics }) => topics.includes(name))?.event
  }

  /** By the clock of the store, as events are. Their ages must not depend on how the clocks of machines differ. */
  now(): number {
    return performance.now() + this.#ahead
  }

  /** The store has read its clock between the question and the answer. The narrowest of these spans decide. */
  #setClock(now: number, asked: number): void {
    this.#ahead = Math.min(Math.max(this.#ahead, now - performance.now()), now - asked)
  }

  hasAnsweredSince(time: number): boolean {
    return this.#answeredAt > time
  }

  look(writtenHere = false): void {
    this.#hasWritten ||= writtenHere
    this.#ask()
  }

  async #round(): Promise<void> {
    if (this.#isStopped) return
    const { log, bus, observer } = this.#parts
    const begun = performance.now()
    const written = this.#hasWritten
    this.#hasWritten = false
    try {
      const { events, more, isNews, now, lost, waitingSince } = await log.after(this.#place, written)
      this.#answeredAt = begun
      this.#setClock(now, begun)
      this.waitingSince = events[0]?.at ?? waitingSince
      if (lost) {
        this.#beginAt(await log.end())
        return this.#listener?.lose()
      }
      this.#hasUnannounced ||= events.length > 0
      if (isNews && this.#hasUnannounced) {
        this.#hasUnannounced = false
        bus.announce()
      }
      let end = performance.now() + sliceMs
      for (const event of events) {
        if (performance.now() > end) {
          await turn()
          end = performance.now() + sliceMs
        }
        if (event.kind === 'user-revoked') await this.#listener?.revoke(event.userId)
        this.#place = event
        this.#recent.push({ event, topics: topicsOf(event) })
        if (this.#recent.length > mostRecent) this.#from = this.#recent.shift()?.event.position ?? this.#from
        this.#listener?.wake(event)
      }
      this.waitingSince = waitingSince
      if (more) this.look()
    } catch (error) {
      if (!isOutage(error)) observer.trouble('Events could not be read', error)
    }
  }

  #beginAt(place: Place): void {
    this.#place = place
    this.#from = place.position
    this.#recent.length = 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#timer)
    await this.#running
  }
}

const mostRecent = 1_000
/** Each of hundreds of events may wake thousands of subscriptions. */
const sliceMs = 5
const pollMs = 1_000
/** Between two rounds, so that the database is left to writers. */
const pauseMs = 10
