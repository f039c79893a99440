import type { DuetError } from './errors.ts'
import type { Subscription, Watcher } from './watch.ts'

export interface Pausable extends Subscription {
  /** Stops the events until `resume`, which continues after the last one. */
  pause(): void
  resume(): void
}

/**
 * The events of a subscription as an iterator. It subscribes at once, so that no event is missed before the first
 * `next`. When many events wait in its buffer, it pauses the subscription.
 */
export function iterator<Data>(
  subscribe: (watcher: Pick<Watcher<Data>, 'onData' | 'onError' | 'onEnd'>) => Pausable,
): AsyncIterableIterator<Data> {
  const arrived: Data[] = []
  let waiting: (() => void)[] = []
  let over: { error?: DuetError } | undefined
  let isPaused = false
  const wake = () => {
    const woken = waiting
    waiting = []
    for (const resume of woken) resume()
  }
  const finish = (outcome: { error?: DuetError }) => {
    over = outcome
    wake()
  }
  const subscription = subscribe({
    onData(data) {
      if (arrived.push(data) === mostArrived) {
        isPaused = true
        subscription.pause()
      }
      wake()
    },
    onError: error => finish({ error }),
    onEnd: () => finish({}),
  })
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      while (arrived.length === 0 && over === undefined) {
        if (isPaused) subscription.resume()
        isPaused = false
        await new Promise<void>(resolve => waiting.push(resolve))
      }
      if (arrived.length > 0) return { done: false, value: arrived.shift() as Data }
      const error = over?.error
      over = {}
      if (error !== undefined) throw error
      return { done: true, value: undefined }
    },
    async return() {
      subscription.close()
      arrived.length = 0
      finish({})
      return { done: true, value: undefined }
    },
  }
}

const mostArrived = 1000
