import { FairQueue, type FairQueueBounds } from '../core/fair-queue.ts'
import { bounds } from './bounds.ts'
import type { Statement } from './sql.ts'

/** The turns of heavy reads. Clients take turns, and equal reads that wait run once. */
export class HeavyTurns<Outcome> {
  readonly #turns: FairQueue
  readonly #waitMs: number
  /** Reads that wait for their turn: by their text, which can be long and is not copied, and then by their values. */
  readonly #waiting = new Map<string, Map<string, SharedRead<Outcome>>>()

  constructor(atOnce: Pick<FairQueueBounds, 'atOnce' | 'perClient'>, waitMs: number) {
    this.#waitMs = waitMs
    this.#turns = new FairQueue({ ...atOnce, mayWait: bounds.heavyReads.waiting })
  }

  async run({ text, values, client = '' }: Statement, read: () => Promise<Outcome>): Promise<Outcome> {
    const key = JSON.stringify(values)
    const alike = this.#waiting.get(text) ?? new Map<string, SharedRead<Outcome>>()
    const shared = alike.get(key) ?? { readers: 0, outcome: undefined }
    this.#waiting.set(text, alike.set(key, shared))
    const forget = () => {
      if (alike.get(key) !== shared) return
      alike.delete(key)
      if (alike.size === 0) this.#waiting.delete(text)
    }
    const turn = () => {
      forget() // a read that is requested from now on needs a later snapshot
      shared.outcome ??= read()
      return shared.outcome
    }
    shared.readers++
    try {
      return await this.#turns.run(client, turn, this.#waitMs)
    } finally {
      if (--shared.readers === 0) forget()
    }
  }
}

/** One run for all equal reads that were requested before it began: they may return the same rows. */
interface SharedRead<Outcome> {
  readers: number
  outcome: Promise<Outcome> | undefined
}
