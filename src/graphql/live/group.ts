import { createHash } from 'node:crypto'
import type { Event, Topic } from '../../core/events.ts'
import type { Selection, Slot, SlotValues } from '../../core/selection.ts'
import type { Refusal } from '../errors.ts'
import type { SharedMessage } from './shared-message.ts'

/** A subscription: the topic, and the selection to read for each event. */
export interface Subscription {
  readonly topic: Topic
  /** The field's key in the answer. */
  readonly key: string
  readonly selection: Selection
  readonly values: SlotValues
  /** The slot for the id of the post or comment. */
  readonly id: Slot
}

/** Receives the messages of a subscription. */
export interface Subscriber {
  /** Resolves when its client has read most of what was sent. Undefined if it has. */
  ready(): Promise<void> | undefined
  next(message: SharedMessage): void
  fail(refusal: Refusal): void
  complete(): void
}

export interface Member {
  readonly subscriber: Subscriber
  readonly client: string
  /** It gets the events after this position. */
  from: number
  /** The group that it is in. Undefined if it has left. */
  group: Group | undefined
}

/** Subscribers with the same topic and the same selection, all with or all without positions, and one cursor. */
export class Group {
  readonly name: string
  readonly subscription: Subscription
  /** Whether the messages carry positions. */
  readonly positions: boolean
  readonly members = new Set<Member>()
  /** All events up to this position were delivered. While the group waits for events, this may be an older position. */
  cursor: number
  /** The next events, if they were read from the log because they are no longer among the recent ones. */
  page: readonly Event[] = []
  /** The number of reads in a row that did not finish in time. */
  slowReads = 0
  /** A position that it must reach soon after the time, in milliseconds of `performance.now()`. */
  goal = { position: 0, setAt: 0 }

  constructor(name: string, subscription: Subscription, positions: boolean, cursor: number) {
    this.name = name
    this.subscription = subscription
    this.positions = positions
    this.cursor = cursor
  }
}

/** Identifies the topic, the selection and whether there are positions. A hash, because a selection can be long. */
export function groupName({ topic, selection, values }: Subscription, positions: boolean): string {
  return createHash('sha256')
    .update(JSON.stringify([topic, selection, values, positions]))
    .digest('base64')
}
