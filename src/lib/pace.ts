import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { oneAtATime } from './one-at-a-time.ts'

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

/** Does work for each of many items. All of it together takes a few milliseconds of a turn of the event loop. */
export async function inSlices<Item>(items: Iterable<Item>, work: (item: Item) => void): Promise<void> {
  for (const item of items) {
    work(item)
    // Of the difference in either direction, because a test may have set the clock back.
    while (Math.abs(performance.now() - begun) > sliceMs) begun = await nextSlice()
  }
}

const sliceMs = 5
let begun = Number.NEGATIVE_INFINITY
const nextSlice = oneAtATime(() => turn().then(() => performance.now()))
