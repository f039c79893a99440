import { setTimeout as pause } from 'node:timers/promises'
import { AppError, fault } from '../../core/errors.ts'
import { type Event, type EventLog, placeToText } from '../../core/events.ts'
import { FairQueue } from '../../core/fair-queue.ts'
import { subjectOf } from '../../core/posts/topics.ts'
import type { PostStore } from '../../core/store.ts'
import { Refusal, refusal, refusalFromCore } from '../errors.ts'
import { SharedMessage } from '../socket/shared-message.ts'
import type { Group } from './group.ts'

export interface EventReaderParts {
  readonly store: PostStore
  readonly log: EventLog
  /** How many event reads run at once. */
  readonly readsAtOnce: number
  /** How long one read may take, in milliseconds. */
  readonly readMs: number
  readonly report: (error: AppError) => void
  /** The store answers nobody. */
  readonly onOutage: (error: AppError) => void
}

/** `'gone'`: the post or comment of the event no longer exists. `undefined`: the subscription is over. */
export type Message = SharedMessage | 'gone' | Refusal | undefined

/**
 * Reads the selections of groups. Clients take turns. A group whose reads do not finish in time, while the store answers
 * others, is ended.
 */
export class EventReader {
  readonly #parts: EventReaderParts
  readonly #reads: FairQueue
  /**
   * For groups whose last read did not finish in time. These reads run one at a time, so that no group is blamed for
   * the slow read of another.
   */
  readonly #suspects = new FairQueue({ atOnce: 1, perClient: 1 })
  #probe: Promise<boolean> | undefined

  constructor(parts: EventReaderParts) {
    this.#parts = parts
    // One client may use at most half of the reads.
    this.#reads = new FairQueue({ atOnce: parts.readsAtOnce, perClient: Math.ceil(parts.readsAtOnce / 2) })
  }

  /** `'again'`: the caller must try again, if the group still has members. */
  async messageFor(group: Group, event: Event): Promise<Message | 'again'> {
    const subject = subjectOf(event)
    if (subject === undefined) return undefined
    const { selection, values, id } = group.subscription
    const read = async () => {
      if (group.isOver) return undefined // the group has no members any more
      const begun = performance.now()
      const data = await this.#parts.store.find(selection, values.with(id, subject), group.owner)
      return { data, ms: performance.now() - begun }
    }
    try {
      const found = await (group.timedOutReads === 0 ? this.#reads : this.#suspects).run(group.owner, read)
      if (found === undefined) return 'again'
      group.timedOutReads = found.ms > this.#parts.readMs ? group.timedOutReads + 1 : 0
      if (group.timedOutReads >= mostTimedOutReads) return tooExpensive()
      if (found.data === undefined) return 'gone'
      return new SharedMessage(found.data, group.positions ? placeToText(event) : undefined)
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unavailable') return this.refusalOf(error)
      return this.#missed(group, error)
    }
  }

  /** What a subscriber is told about an error. */
  refusalOf(error: unknown): Refusal {
    if (error instanceof Refusal) return error
    if (error instanceof AppError && error.code === 'answer-too-large') return refusalFromCore(error, undefined)
    this.#parts.report(error instanceof AppError ? error : fault(error))
    return refusal('INTERNAL_SERVER_ERROR', 'Internal server error')
  }

  /** A read got no answer. If the store answers another request, the group's own read is the cause. */
  async #missed(group: Group, error: AppError): Promise<Message | 'again'> {
    if (await this.#storeAnswers()) return ++group.timedOutReads < mostTimedOutReads ? 'again' : tooExpensive()
    this.#parts.onOutage(error)
    await pause(retryMs, undefined, { ref: false })
    return 'again'
  }

  /** Checks whether the store answers. Concurrent callers share one check (single flight). */
  #storeAnswers(): Promise<boolean> {
    const asked = () =>
      this.#parts.log.now().then(
        () => true,
        () => false,
      )
    this.#probe ??= asked().finally(() => {
      this.#probe = undefined
    })
    return this.#probe
  }
}

export function tooExpensive(): Refusal {
  return refusal('SUBSCRIPTION_TOO_EXPENSIVE', 'What the subscription asks for could not be read in time.')
}

/**
 * A group ends after this many reads in a row that did not finish in time. A single one may happen when the store has
 * just come back.
 */
const mostTimedOutReads = 2
const retryMs = 250
