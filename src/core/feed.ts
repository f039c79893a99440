import { AppError } from './errors.ts'
import { type Event, type EventBus, type EventLog, isLater, type Position } from './events.ts'
import type { StoreObserver } from './ports.ts'

export interface FeedParts {
  readonly log: EventLog
  readonly bus: EventBus
  readonly observer: Pick<StoreObserver, 'trouble'>
}

/** Yields each event once it is delivered. */
export type Deliver = (events: readonly Event[]) => AsyncIterable<Event>

/**
 * Reads the log of events from now on, each once and in order, and hands them over. It looks when it is told that
 * something happened, and once a second in case that was not told. What cannot be handed over is tried again:
 * without end where the store is away, else a few times.
 */
export class Feed implements AsyncDisposable {
  readonly #log: EventLog
  readonly #observer: FeedParts['observer']
  readonly #deliver: Deliver
  #position: Position
  #running: Promise<void> | undefined
  #told = false
  #patience = soonMs
  /** How often the next event was tried in vain, though the store was there. */
  #tries = 0
  #stopped = false
  #timer: NodeJS.Timeout | undefined

  static async start(parts: FeedParts, deliver: Deliver): Promise<Feed> {
    const { from } = await parts.log.now()
    return new Feed(parts, deliver, { transaction: from, id: 0 })
  }

  private constructor({ log, bus, observer }: FeedParts, deliver: Deliver, position: Position) {
    this.#log = log
    this.#observer = observer
    this.#deliver = deliver
    this.#position = position
    bus.listen(() => this.look())
    this.#lookAgainIn(pollMs)
  }

  /** Rounds do not overlap; who is told during one looks once more after it. */
  look(): void {
    this.#told = true
    if (this.#stopped) return
    this.#running ??= this.#round().finally(() => {
      this.#running = undefined
      if (this.#told) this.look()
    })
  }

  async #round(): Promise<void> {
    this.#told = false
    clearTimeout(this.#timer)
    let next = pollMs
    try {
      for (let more = true; more && !this.#stopped; ) {
        const found = await this.#log.after(this.#position)
        const leftOut = await this.#handOver(found.events)
        if (this.#stopped) return
        // What is about to be seen waits for transactions of others to end, which may take long.
        if (found.events.length > 0) this.#patience = soonMs
        else if (found.more) {
          next = this.#patience
          this.#patience = Math.min(this.#patience * 2, retryMs)
        }
        more = found.events.length > 0 && (found.more || leftOut)
      }
    } catch (error) {
      if (!isOutage(error)) this.#observer.trouble('Events could not be delivered', error)
      next = retryMs
    }
    this.#lookAgainIn(next)
  }

  /** Whether one of them was left out, and those after it are still to come. */
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
      // It will not succeed: those that follow are not to wait for it for ever.
      this.#tries = 0
      this.#observer.trouble('An event was left out: it could not be delivered', error)
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
