/**
 * Limits the log lines that clients cause by requests that the rate limit refuses or does not count. Lines above the limit are
 * counted, and the next line that is logged tells how many were left out.
 */
export class LineLimit {
  readonly #perSecond: number
  readonly #now: () => number
  #second = 0
  #logged = 0
  #leftOut = 0

  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond
    this.#now = now
  }

  /** Calls `log` unless there were too many lines in this second. */
  pass(log: (more: { readonly leftOut?: number }) => void): void {
    const second = Math.floor(this.#now() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#logged = 0
    }
    if (++this.#logged > this.#perSecond) {
      this.#leftOut++
      return
    }
    log(this.#leftOut > 0 ? { leftOut: this.#leftOut } : {})
    this.#leftOut = 0
  }
}

export const refusedLinesPerSecond = 100
