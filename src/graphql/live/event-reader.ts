import { AppError } from '../../core/errors.ts'
import { type Event, type EventLog, placeToText, type RecentEvents, subjectOf } from '../../core/events.ts'
import { FairQueue } from '../../core/fair-queue.ts'
import type { PostStore } from '../../core/store.ts'
import { type Refusal, refusal } from '../errors.ts'
import type { Group } from './group.ts'
import { SharedMessage } from './shared-message.ts'

export interface EventReaderParts {
  readonly store: PostStore
  readonly log: EventLog
  readonly feed: RecentEvents
  /** How many reads run at once. */
  readonly readsAtOnce: number
  /** How long one read may take, in milliseconds. */
  readonly readMs: number
}

/** Reads what groups need. Clients take turns: one that has many expensive groups does not delay the others. */
export class EventReader {
  readonly #parts: EventReaderParts
  readonly #reads: FairQueue

  constructor(parts: EventReaderParts) {
    this.#parts = parts
    // One client may use at most half of the reads.
    this.#reads = new FairQueue({ atOnce: parts.readsAtOnce, perClient: Math.ceil(parts.readsAtOnce / 2) })
  }

  /** `'gone'`: the post or comment of the event no longer exists. `undefined`: the subscription is over. */
  async message(group: Group, client: string, event: Event): Promise<SharedMessage | 'gone' | undefined> {
    const subject = subjectOf(event)
    if (subject === undefined) return undefined
    const { selection, values, id } = group.subscription
    const read = () => this.#parts.store.find(selection, values.with(id, subject))
    const data = await this.#reads.run(client, () => this.#timed(group, read))
    return data === undefined ? 'gone' : new SharedMessage(data, group.positions ? placeToText(event) : undefined)
  }

  /** The next events of a group, up to a position. */
  async page({ cursor, subscription }: Group, client: string, through: number): Promise<readonly Event[]> {
    const read = () => this.#parts.log.ofTopic(subscription.topic, cursor, through)
    const events = await this.#reads.run(client, read)
    if (events === undefined) throw positionUnknown()
    return events
  }

  /** Throws if the group's reads again and again do not finish in time, while the store answers others. */
  async #timed<Outcome>(group: Group, read: () => Promise<Outcome>): Promise<Outcome> {
    const { feed, readMs } = this.#parts
    const begun = performance.now()
    try {
      const outcome = await read()
      if (performance.now() - begun <= readMs) group.slowReads = 0
      else if (++group.slowReads >= mostSlowReads) throw tooExpensive()
      return outcome
    } catch (error) {
      const isOwnFault = error instanceof AppError && error.code === 'unavailable' && feed.hasAnsweredSince(begun)
      if (isOwnFault && ++group.slowReads >= mostSlowReads) throw tooExpensive()
      throw error
    }
  }
}

export function tooExpensive(): Refusal {
  return refusal('SUBSCRIPTION_TOO_EXPENSIVE', 'What the subscription asks for could not be read in time.')
}

export function positionUnknown(): Refusal {
  const sentence = 'The position is not known, or no longer. Read the current state and subscribe anew.'
  return refusal('POSITION_UNKNOWN', sentence)
}

/** A single slow read may happen when the store has just come back. */
const mostSlowReads = 2
