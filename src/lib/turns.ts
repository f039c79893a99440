import { setImmediate as turn } from 'node:timers/promises'

/** For work in many small steps, of many at the same time: together they leave a turn to other work now and then. */
export class Turns {
  readonly #sliceMs: number
  #end = 0
  #next: Promise<void> | undefined

  constructor(sliceMs: number) {
    this.#sliceMs = sliceMs
  }

  /** Resolves when there is time for one more step. */
  async next(): Promise<void> {
    while (performance.now() >= this.#end) {
      this.#next ??= turn().then(() => {
        this.#next = undefined
        this.#end = performance.now() + this.#sliceMs
      })
      await this.#next
    }
  }
}
