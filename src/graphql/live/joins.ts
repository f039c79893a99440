import { isOutage } from '../../core/errors.ts'
import type { EventLog, Place, Topic } from '../../core/events.ts'
import { placeFromText, placeToText } from '../../core/events.ts'
import { Queue } from '../../core/queue.ts'
import type { PostStore } from '../../core/store.ts'
import { type Refusal, refusal } from '../errors.ts'

export interface JoinsParts {
  readonly store: PostStore
  readonly log: EventLog
  readonly readsAtOnce: number
}

/**
 * What must be read before a client can log in or subscribe. After a restart thousands of clients come at once. They
 * wait here for their turn, apart from everything else, and those that want to know the same share one read.
 */
export class Joins {
  readonly #parts: JoinsParts
  readonly #reads: Queue
  /** The end of the log does not wait behind other reads: a subscription that begins now begins there. */
  readonly #ends = new Queue({ atOnce: 2 })

  constructor(parts: JoinsParts) {
    this.#parts = parts
    this.#reads = new Queue({ atOnce: parts.readsAtOnce })
  }

  inTurn<Outcome>(read: () => Promise<Outcome>): Promise<Outcome> {
    return this.#reads.run(() => patiently(read))
  }

  /** Those with the same name share one read. */
  share<Outcome>(name: string, read: () => Promise<Outcome>): Promise<Outcome> {
    return this.#reads.share(name, () => patiently(read))
  }

  end(): Promise<Place> {
    return this.#ends.share('end', () => patiently(() => this.#parts.log.end()))
  }

  /** The place that a client has named. */
  async placeIn(after: unknown): Promise<Place> {
    const place = placeFromText(after)
    const isKept = place && (await this.share(placeToText(place), () => this.#parts.log.keeps(place)))
    if (isKept) return place
    throw positionUnknown()
  }

  /** Whether the topic exists, or its end will be told to whoever begins at this position. */
  async exists(topic: Topic, from: number): Promise<boolean> {
    const { store, log } = this.#parts
    const { postId } = topic
    if (postId === undefined) return true
    const hasPost = await this.share(`post ${postId}`, () => store.hasPost(postId))
    return hasPost || log.tellsEndOf(postId, from)
  }
}

/** While it opens thousands of sockets, this thread may not notice in time that the store answers. So it asks again. */
async function patiently<Outcome>(read: () => Promise<Outcome>): Promise<Outcome> {
  for (let tries = 1; ; tries++) {
    try {
      return await read()
    } catch (error) {
      if (!isOutage(error) || tries === mostTries) throw error
    }
  }
}

const mostTries = 3

export function positionUnknown(): Refusal {
  const sentence = 'The position is not known, or no longer. Read the current state and subscribe anew.'
  return refusal('POSITION_UNKNOWN', sentence)
}
