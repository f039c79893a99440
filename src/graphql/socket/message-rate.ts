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

  /** Counts a message. Returns whether it is allowed. */
  take(): boolean {
    const now = this.#now()
    // If the clock was set back, a new window starts too.
    if (now < this.#begun || now >= this.#begun + windowSeconds * 1000) {
      this.#begun = now
      this.#count = 0
    }
    return ++this.#count <= this.#most
  }
}

const windowSeconds = 10
