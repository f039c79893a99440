import { AppError } from './errors.ts'
import { type Event, type EventBus, type EventLog, isLater, type Position } from './events.ts'
import type { StoreObserver } from './ports.ts'

export interface FeedParts {
  readonly log: EventLog
  readonly bus: EventBus
  readonly observer: Pick<StoreObserver, 'trouble'>
  /** Called when the log has lost events. The positions that subscribers have are no longer valid. */
  readonly onLoss?: () => void
}

/** Yields each event after it has been delivered. */
export type Deliver = (events: readonly Event[]) => AsyncIterable<Event>

/**
 * Reads the event log from now on and delivers each event once and in order. It reads the log when the bus notifies it,
 * and also once a second in case a notification got lost. It retries a failed delivery: without limit while the store
 * is unavailable, otherwise a few times.
 */
export class Feed implements AsyncDisposable {
  readonly #log: EventLog
  readonly #observer: FeedParts['observer']
  readonly #onLoss: () => void
  readonly #deliver: Deliver
  #position: Position
  #running: Promise<void> | undefined
  #notified = false
  #retryDelayMs = soonMs
  /** How many times the delivery of the next event failed although the store was available. */
  #tries = 0
  #undeliveredSince: number | undefined
  #stopped = false
  #timer: NodeJS.Timeout | undefined

  static async start(parts: FeedParts, deliver: Deliver): Promise<Feed> {
    return new Feed(parts, deliver, await parts.log.end())
  }

  private constructor({ log, bus, observer, onLoss = () => {} }: FeedParts, deliver: Deliver, position: Position) {
    this.#log = log
    this.#observer = observer
    this.#onLoss = onLoss
    this.#deliver = deliver
    this.#position = position
    bus.listen(() => this.look())
    this.#lookAgainIn(pollMs)
  }

  /** When the oldest event happened that is known and not delivered yet. Milliseconds since 1970. */
  get undeliveredSince(): number | undefined {
    return this.#undeliveredSince
  }

  /** Rounds do not overlap. A notification during a round causes one more round after it. */
  look(): void {
    this.#notified = true
    if (this.#stopped) return
    this.#running ??= this.#round().finally(() => {
      this.#running = undefined
      if (this.#notified) this.look()
    })
  }

  async #round(): Promise<void> {
    this.#notified = false
    clearTimeout(this.#timer)
    let delayMs = pollMs
    try {
      for (let more = true; more && !this.#stopped; ) {
        const found = await this.#log.after(this.#position)
        if (found.lost) await this.#beginAgain()
        this.#undeliveredSince = found.events[0]?.at ?? found.heldSince
        const skippedOne = await this.#handOver(found.events)
        this.#undeliveredSince = found.heldSince
        if (this.#stopped) return
        // Events that are not visible yet wait for other transactions to end, which may take long. So the delay grows.
        if (found.events.length > 0) this.#retryDelayMs = soonMs
        else if (found.more) {
          delayMs = this.#retryDelayMs
          this.#retryDelayMs = Math.min(this.#retryDelayMs * 2, retryMs)
        }
        more = found.events.length > 0 && (found.more || skippedOne)
      }
    } catch (error) {
      if (!isOutage(error)) this.#observer.trouble('Events could not be delivered', error)
      delayMs = retryMs
    }
    this.#lookAgainIn(delayMs)
  }

  async #beginAgain(): Promise<void> {
    this.#position = await this.#log.end()
    this.#onLoss()
  }

  /** Returns true if an event was skipped and the events after it are still to be delivered. */
  async #handOver(events: readonly Event[]): Promise<boolean> {
    try {
      for await (const { position } of this.#deliver(events)) {
        this.#position = position
        this.#tries = 0
        if (this.#stopped) break
      }
      return false
    } catch (error) {
      if (isOutage(error) || ++this.#tries < mostTries) throw error
      // This event will never succeed. The events after it must not wait for it forever.
      this.#tries = 0
      this.#observer.trouble('An event was skipped because it could not be delivered', error)
      this.#position = events.find(({ position }) => isLater(position, this.#position))?.position ?? this.#position
      return true
    }
  }

  #lookAgainIn(ms: number): void {
    if (!this.#stopped) this.#timer = setTimeout(() => this.look(), ms).unref()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#running
  }
}

function isOutage(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable'
}

const mostTries = 10
const pollMs = 1000
const retryMs = 250
const soonMs = 5
