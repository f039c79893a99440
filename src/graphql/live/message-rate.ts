/**
 * Rate limit for the messages of one socket. It counts in windows of ten seconds. A window starts with the first
 * message after the previous window.
 */
export class MessageRate {
  readonly #most: number
  readonly #now: () => number
  #begun = Number.NEGATIVE_INFINITY
  #count = 0

  /** `perSecond` 0 means no limit. */
  constructor(perSecond: number, now: () => number) {
    this.#most = perSecond === 0 ? Number.POSITIVE_INFINITY : perSecond * windowSeconds
    this.#now = now
  }

  /** Whether one more is allowed. A large message counts as several. */
  take(bytes = 0): boolean {
    const now = this.#now()
    // If the clock was set back, a new window starts too.
    if (now < this.#begun || now >= this.#begun + windowSeconds * 1000) {
      this.#begun = now
      this.#count = 0
    }
    this.#count += 1 + Math.floor(bytes / bytesPerMessage)
    return this.#count <= this.#most
  }
}

const windowSeconds = 10
/** 50 messages a second, the default, are 400 KiB a second. */
const bytesPerMessage = 8 * 1024
