import { setImmediate as turn } from 'node:timers/promises'

/** For work in many small steps, of many at the same time: together they leave a turn to other work now and then. */
export class Turns {
  readonly #sliceMs: number
  #end = 0
  #left = 0
  #next: Promise<void> | undefined

  constructor(sliceMs: number) {
    this.#sliceMs = sliceMs
  }

  /** Resolves when there is time for one more step. */
  async next(): Promise<void> {
    while (this.#left === 0 || performance.now() >= this.#end) {
      this.#next ??= turn().then(() => {
        this.#next = undefined
        this.#end = performance.now() + this.#sliceMs
        this.#left = mostSteps
      })
      await this.#next
    }
    this.#left--
  }
}

/** All who wait go on at the same moment, so the time alone would let thousands of them pass. */
const mostSteps = 200
