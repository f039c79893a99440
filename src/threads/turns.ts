import type { ThreadCalls } from '../cluster/thread-calls.ts'
import { FairQueue, type FairQueueBounds, type Turns } from '../core/fair-queue.ts'

/** Turns that the main thread gives to all threads. */
export class TurnOffice {
  readonly #queue: FairQueue
  /** Ends each turn that a thread has, by thread. */
  readonly #turns = new Map<number, Map<number, () => void>>()
  #lastTurn = 0

  constructor(bounds: FairQueueBounds) {
    this.#queue = new FairQueue(bounds)
  }

  /** Resolves with the number of the turn when it begins. */
  begin(thread: number, client: string, waitMs: number | undefined): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const turn = ++this.#lastTurn
    const work = () =>
      new Promise<void>(done => {
        const turns = this.#turns.get(thread) ?? new Map<number, () => void>()
        this.#turns.set(thread, turns.set(turn, done))
        resolve(turn)
      })
    this.#queue.run(client, work, waitMs).catch(reject)
    return promise
  }

  end(thread: number, turn: number): void {
    const turns = this.#turns.get(thread)
    turns?.get(turn)?.()
    turns?.delete(turn)
  }

  /** Ends the turns of a thread that has ended. */
  forget(thread: number): void {
    for (const done of this.#turns.get(thread)?.values() ?? []) done()
    this.#turns.delete(thread)
  }
}

/** The turns of a thread, which the main thread gives. */
export function turnsOf(main: ThreadCalls): Turns {
  return {
    async run(client, work, waitMs) {
      const turn = await main.call<number>('beginTurn', [client, waitMs])
      try {
        return await work()
      } finally {
        main.call('endTurn', [turn]).catch(() => {}) // the main thread has ended
      }
    },
  }
}
