import { setTimeout as pause } from 'node:timers/promises'
import { AppError } from '../../core/errors.ts'
import { type Event, type EventLog, isLater, type NextEvents, type Place, type Position } from '../../core/events.ts'
import { isSameTopic, type Topic, topicOf } from '../../core/posts/topics.ts'
import { type Refusal, refusal } from '../errors.ts'

/** What a subscriber asks for in the `extensions` of its message. */
export interface Resume {
  /** Whether each message carries the position of its event. */
  readonly positions: boolean
  /** The position after which to begin, as the client sent it. Default: now. */
  readonly after?: unknown
}

export const fromNow: Resume = Object.freeze({ positions: false })

export interface CatchUpParts {
  readonly log: EventLog
  readonly topic: Topic
  /** Runs a read of the log when it is this client's turn. */
  readonly inTurn: <Outcome>(read: () => Promise<Outcome>) => Promise<Outcome>
  /** The last event that was handed to the groups. Later ones reach the subscriber's group. */
  readonly latest: () => Position | undefined
  /** Delivers an event to this subscriber. Returns whether its subscription goes on. */
  readonly deliver: (event: Event) => Promise<boolean>
  readonly isOver: () => boolean
}

/**
 * Delivers all events of a topic after a place in the log, once and in order. Returns the position from which on the
 * group delivers, or `undefined` if the subscription is over. The caller must use the position at once, before further
 * events are handed to the groups.
 */
export async function catchUp(
  { log, topic, inTurn, latest, deliver, isOver }: CatchUpParts,
  from: Place,
): Promise<Position | undefined> {
  let place = from
  for (let pages = 0; ; pages++) {
    const { events, more } = await whileUnavailable(
      () => inTurn(async () => (isOver() ? nothing : readSlowly(log, place.position, pages >= quickPages))),
      isOver,
    )
    // If the place before them is still kept, then no event between it and them has been deleted.
    if (pages > 0 && events.length > 0 && !(await whileUnavailable(() => log.keeps(place), isOver)))
      throw positionUnknown()
    for (const event of events) {
      if (isOver()) return undefined
      if (isSameTopic(topic, topicOf(event)) && !(await deliver(event))) return undefined
      place = event
    }
    const { position } = place
    if (isOver()) return undefined
    const handed = latest()
    const isBehind = handed !== undefined && isLater(handed, position)
    if (!isBehind && (handed !== undefined || !more || events.length === 0)) return position
    if (events.length === 0) await pause(retryMs, undefined, { ref: false })
  }
}

const nothing: NextEvents = { events: [], more: false }

/** Repeats a read for as long as the store is unavailable and the subscription goes on. */
export async function whileUnavailable<Outcome>(read: () => Promise<Outcome>, isOver: () => boolean): Promise<Outcome> {
  for (;;) {
    try {
      return await read()
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unavailable' || isOver()) throw error
      await pause(outageMs, undefined, { ref: false })
    }
  }
}

/** A client that was away for long, or says so again and again, leaves most of the time to others. */
async function readSlowly(log: EventLog, position: Position, isSlow: boolean) {
  const begun = performance.now()
  const found = await log.after(position)
  if (isSlow) await pause(Math.min(mostPauseMs, 9 * (performance.now() - begun)), undefined, { ref: false })
  return found
}

export function positionUnknown(): Refusal {
  return refusal(
    'POSITION_UNKNOWN',
    'The position is not known, or no longer. Read the current state and subscribe anew.',
  )
}

/** Pages of the log that are read without a pause. Few clients need more. */
const quickPages = 3
const retryMs = 5
/** Longer pauses would leave clients behind that share an address, if events come fast. */
const mostPauseMs = 10
const outageMs = 250
