import { type Signal, signal } from '@preact/signals'
import { isDuetError, type Live, type Subscription } from '../../../client/src/index.ts'
import { type Problem, problemOf } from './problems.ts'

/** A subscription, and what to do with its events. */
export interface Source<Data = never> {
  readonly document: string
  readonly variables?: Record<string, unknown>
  readonly onData: (data: Data) => void
  /** What it tells of is gone. */
  readonly onEnd?: () => void
}

/**
 * Subscribes, and calls `readAnew` whenever events may be missing: when all sources have begun, and after a gap. Reads
 * that begin after the subscriptions miss nothing. Without a socket, it reads after a moment. A subscription that ends
 * with an error begins again. Returns a function that ends all.
 */
export function follow(live: Live, sources: readonly Source[], readAnew: () => void): () => void {
  const open = new Map<Source, Subscription>()
  const timers = new Set<ReturnType<typeof setTimeout>>()
  const later = (work: () => void, ms: number) => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      work()
    }, ms)
    timers.add(timer)
    return timer
  }
  const impatient = later(readAnew, patienceMs)
  const begin = (source: Source, failures: number) => {
    const { document, variables, onData, onEnd } = source
    let failed = failures
    const subscription = live.subscribe(document, variables, {
      onData,
      onReadAnew: () => {
        failed = 0
        clearTimeout(impatient)
        readAnew()
      },
      onError: error => {
        open.delete(source)
        if (onEnd !== undefined && isDuetError(error, 'notFound')) onEnd()
        else later(() => begin(source, failed + 1), Math.min(retryMs * 2 ** failed, longestRetryMs))
      },
      onEnd: () => onEnd?.(),
    })
    open.set(source, subscription)
  }
  for (const source of sources) begin(source, 0)
  return () => {
    for (const timer of timers) clearTimeout(timer)
    for (const subscription of open.values()) subscription.close()
  }
}

const patienceMs = 1000
const retryMs = 2000
const longestRetryMs = 60_000

/** A read that may be wanted again while it is under way. */
export interface Reader {
  readonly busy: Signal<boolean>
  /** Why the latest read failed. */
  readonly problem: Signal<Problem | undefined>
  /** Reads once for all calls of the same moment, and once more for those that came while it was reading. */
  run(): void
}

export function reader(read: () => Promise<void>): Reader {
  const busy = signal(false)
  const problem = signal<Problem | undefined>(undefined)
  let isWanted = false
  const work = async () => {
    while (isWanted) {
      isWanted = false
      try {
        await read()
        problem.value = undefined
      } catch (error) {
        problem.value = problemOf(error)
      }
    }
    busy.value = false
  }
  return {
    busy,
    problem,
    run() {
      isWanted = true
      if (busy.peek()) return
      busy.value = true
      queueMicrotask(work)
    },
  }
}
