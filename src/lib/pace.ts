import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'

/** Long work in parts. Between two of them others are served, for as long as the part before took. */
export class Pace {
  #begun = performance.now()

  async rest(): Promise<void> {
    const ms = Math.min(performance.now() - this.#begun, longestMs)
    await (ms < 0.5 ? turn() : delay(ms))
    this.#begun = performance.now()
  }
}

/** A part may also have waited, for the database or others. */
const longestMs = 3
