import { AppError } from '../core/errors.ts'
import {
  type Event,
  type EventBus,
  type EventLog,
  nameOf,
  type Place,
  type RecentEvents,
  type Topic,
  topicOf,
} from '../core/events.ts'
import type { StoreObserver } from '../core/ports.ts'

export interface FeedParts {
  readonly log: EventLog
  readonly bus: EventBus
  readonly observer: Pick<StoreObserver, 'trouble'>
  /** Milliseconds between two rounds. */
  readonly pauseMs?: number
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
 * log when the bus says so, and also once a second in case a notification got lost. While the store is unavailable, it
 * tries again and again.
 */
export class Feed implements RecentEvents, AsyncDisposable {
  readonly #parts: FeedParts
  readonly #pauseMs: number
  #listener: FeedListener | undefined
  #place: Place = { position: 0, at: 0 }
  /** The latest events, all after `#from`, with the names of their topics. */
  readonly #recent: { readonly event: Event; readonly topic: string | undefined }[] = []
  #from = 0
  #running: Promise<void> | undefined
  #notified = false
  #written = false
  #failed = false
  /** Whether events were read since the last announcement. They may be this thread's own, read before it knew of them. */
  #hasUnannounced = false
  #answeredAt = Number.NEGATIVE_INFINITY
  #waitingSince: number | undefined
  #stopped = false
  #timer: NodeJS.Timeout | undefined
  /** Set during the pause after a round. */
  #resting: NodeJS.Timeout | undefined

  constructor(parts: FeedParts) {
    this.#parts = parts
    this.#pauseMs = parts.pauseMs ?? 10
  }

  /** Begins at the end of the log. */
  async start(listener: FeedListener): Promise<void> {
    this.#listener = listener
    this.#beginAt(await this.#parts.log.end())
    this.#parts.bus.listen(writtenHere => this.look(writtenHere))
    this.#lookAgainIn(pollMs)
  }

  get position(): number {
    return this.#place.position
  }

  /** When the oldest event happened that is known and could not be read yet. Milliseconds since 1970. */
  get waitingSince(): number | undefined {
    return this.#waitingSince
  }

  reaches(position: number): boolean {
    return position >= this.#from
  }

  next(topic: Topic, after: number): Event | undefined {
    const name = nameOf(topic)
    // From the end, because most subscribers wait for the latest event.
    const before = this.#recent.findLastIndex(({ event }) => event.position <= after)
    for (let at = before + 1; at < this.#recent.length; at++) {
      const recent = this.#recent[at]
      if (recent?.topic === name) return recent.event
    }
    return undefined
  }

  hasAnsweredSince(time: number): boolean {
    return this.#answeredAt > time
  }

  /**
   * Rounds do not overlap. A notification during a round causes one more round after it. There is a short pause between
   * them: under load, fewer rounds with more events each leave more of the database to writers.
   */
  look(writtenHere = false): void {
    this.#notified = true
    if (writtenHere) this.#written = true
    if (this.#stopped) return
    if (this.#resting === undefined) this.#running ??= this.#round().finally(() => this.#rest())
  }

  #rest(): void {
    this.#running = undefined
    const goOn = () => {
      this.#resting = undefined
      if (this.#notified) this.look()
    }
    if (this.#pauseMs === 0) goOn()
    else if (!this.#stopped) this.#resting = setTimeout(goOn, this.#pauseMs).unref()
  }

  async #round(): Promise<void> {
    this.#notified = false
    clearTimeout(this.#timer)
    try {
      while ((await this.#readSome()) && !this.#stopped);
      this.#lookAgainIn(pollMs)
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unavailable')
        this.#parts.observer.trouble('Events could not be read', error)
      this.#lookAgainIn(retryMs)
    }
  }

  /** Returns whether there is more to read. */
  async #readSome(): Promise<boolean> {
    const { log, bus } = this.#parts
    const written = this.#written
    this.#written = false
    try {
      const begun = performance.now()
      // After a failure it reads first, to find out whether there is anything to write at all.
      const { events, more, isNews, lost, waitingSince } = await log.after(this.#place, written && !this.#failed)
      this.#answeredAt = begun
      this.#failed = false
      this.#waitingSince = events[0]?.at ?? waitingSince
      if (lost) {
        this.#beginAt(await log.end())
        this.#listener?.lose()
        return false
      }
      this.#hasUnannounced ||= events.length > 0
      if ((isNews || written) && this.#hasUnannounced) {
        this.#hasUnannounced = false
        bus.announce()
      }
      for (const event of events) {
        if (event.kind === 'user-revoked') await this.#listener?.revoke(event.userId)
        this.#add(event)
        this.#listener?.wake(event)
      }
      this.#waitingSince = waitingSince
      return more
    } catch (error) {
      this.#written ||= written
      this.#failed = true
      throw error
    }
  }

  #beginAt(place: Place): void {
    this.#place = place
    this.#from = place.position
    this.#recent.length = 0
  }

  #add(event: Event): void {
    this.#place = event
    const topic = topicOf(event)
    this.#recent.push({ event, topic: topic && nameOf(topic) })
    if (this.#recent.length > mostRecent) this.#from = this.#recent.shift()?.event.position ?? this.#from
  }

  #lookAgainIn(ms: number): void {
    if (!this.#stopped) this.#timer = setTimeout(() => this.look(), ms).unref()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    clearTimeout(this.#resting)
    await this.#running
  }
}

const mostRecent = 1_000
const pollMs = 1_000
const retryMs = 250
