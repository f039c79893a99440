import { AppError } from './errors.ts'
import type { Event, EventBus, EventLog, Position } from './events.ts'
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
 * something happened, and once a second in case that was not told. What cannot be handed over is tried again.
 */
export class Feed implements AsyncDisposable {
  readonly #log: EventLog
  readonly #observer: FeedParts['observer']
  readonly #deliver: Deliver
  #position: Position
  #running: Promise<void> | undefined
  #told = false
  #patience = soonMs
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
        for await (const { position } of this.#deliver(found.events)) {
          this.#position = position
          if (this.#stopped) return
        }
        // What is about to be seen waits for transactions of others to end, which may take long.
        if (found.events.length > 0) this.#patience = soonMs
        else if (found.more) {
          next = this.#patience
          this.#patience = Math.min(this.#patience * 2, retryMs)
        }
        more = found.events.length > 0 && found.more
      }
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unavailable')
        this.#observer.trouble('Events could not be delivered', error)
      next = retryMs
    }
    this.#lookAgainIn(next)
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

const pollMs = 1000
const retryMs = 250
const soonMs = 5
