import { type Event, type EventLog, isLater, type Place, type Position, placeFromText } from '../../core/events.ts'
import { FairQueue } from '../../core/fair-queue.ts'
import type { EventReader } from './event-reader.ts'
import type { FanOutObserver, Group, Member } from './group.ts'
import { type CatchUpParts, catchUp, positionUnknown } from './resume.ts'
import type { Sender } from './sender.ts'

export interface ReplaysParts {
  readonly log: EventLog
  readonly reader: EventReader
  readonly sender: Sender
  /** The last event that was handed to the groups. */
  readonly latest: () => Position | undefined
  readonly observer: FanOutObserver
}

/** Delivers to subscribers that resume first what happened since their position. */
export class Replays {
  readonly #parts: ReplaysParts
  /** For the reads of the log. */
  readonly #catchUps = new FairQueue({ atOnce: 4, perClient: 2 })
  /** Limits the messages of each client that are read and not sent yet. */
  readonly #replays = new FairQueue({ atOnce: Number.POSITIVE_INFINITY, perClient: 2 })

  constructor(parts: ReplaysParts) {
    this.#parts = parts
  }

  /** The place in the log that a client sent. Refuses one from which on events are missing. */
  async placeOf(after: unknown): Promise<Place> {
    const place = placeFromText(after)
    if (place === undefined || !(await this.#parts.log.keeps(place))) throw positionUnknown()
    return place
  }

  /**
   * Delivers all events after a place to a member of a group that accepts nothing yet. Then the member accepts what the
   * group receives. Returns whether the subscription goes on.
   */
  async catchUp(group: Group, member: Member, place: Place): Promise<boolean> {
    const isOver = () => !group.members.has(member)
    const parts: CatchUpParts = {
      log: this.#parts.log,
      topic: group.subscription.topic,
      inTurn: read => this.#catchUps.run(member.client, read),
      latest: this.#parts.latest,
      deliver: event => this.#replay(event, group, member),
      isOver,
    }
    const position = await catchUp(parts, place)
    if (position === undefined) return false
    member.accepts = event => isLater(event.position, position)
    return true
  }

  /** Delivers an earlier event to one member. Returns whether its subscription goes on. */
  async #replay(event: Event, group: Group, member: Member): Promise<boolean> {
    for (;;) {
      await member.subscriber.ready()
      const outcome = await this.#replays.run(member.client, () => this.#replayNow(event, group, member))
      if (outcome !== 'later') return outcome
    }
  }

  /** Reads the message only if its client is ready for it: messages that wait would take memory. */
  async #replayNow(event: Event, group: Group, member: Member): Promise<boolean | 'later'> {
    const isOver = () => !group.members.has(member)
    if (isOver()) return false
    if (member.subscriber.ready() !== undefined) return 'later'
    const message = await this.#parts.reader.messageFor(group, event)
    if (isOver()) return false
    // Another message may have been sent meanwhile.
    if (message === 'again' || member.subscriber.ready() !== undefined) return 'later'
    if (message === 'gone') this.#parts.observer.skipped()
    else if (this.#parts.sender.send(message, group, member)) this.#parts.observer.replayed()
    return !isOver()
  }
}
