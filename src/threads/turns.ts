import { FairQueue, type FairQueueBounds, type Turns } from '../core/fair-queue.ts'
import type { ThreadCalls } from './thread-calls.ts'

/** Turns that the main thread gives to all threads. */
export class TurnOffice {
  readonly #queue: FairQueue

  constructor(bounds: FairQueueBounds) {
    this.#queue = new FairQueue(bounds)
  }

  /** The turns of one thread, from its start to its end. */
  enter(): ThreadTurns {
    return new ThreadTurns(this.#queue)
  }
}

export class ThreadTurns {
  readonly #queue: FairQueue
  /** Ends each turn that the thread has. */
  readonly #running = new Map<number, () => void>()
  #last = 0
  #isOver = false

  constructor(queue: FairQueue) {
    this.#queue = queue
  }

  /** Resolves with the number of the turn when it begins. */
  begin(client: string, waitMs: number | undefined): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const turn = ++this.#last
    const work = async () => {
      if (this.#isOver) return // the thread has ended while it waited, so nobody would end this turn
      await new Promise<void>(done => {
        this.#running.set(turn, done)
        resolve(turn)
      })
    }
    this.#queue.run(client, work, waitMs).catch(reject)
    return promise
  }

  end(turn: number): void {
    this.#running.get(turn)?.()
    this.#running.delete(turn)
  }

  /** The thread has ended. */
  leave(): void {
    this.#isOver = true
    for (const done of this.#running.values()) done()
    this.#running.clear()
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
