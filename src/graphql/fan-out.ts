import { AppError } from '../core/errors.ts'
import { type Event, type EventLog, isAfter, type Moment } from '../core/events.ts'
import type { Selection, Slot, SlotValues } from '../core/selection.ts'
import type { PostStore } from '../core/store.ts'
import { type Refusal, refusal, refusalFor } from './errors.ts'
import { SharedMessage } from './shared-message.ts'

/** What a subscription wants to be told about, and what it wants to know of it. */
export interface Subscription {
  readonly topic: Topic
  /** The field's key in the answer. */
  readonly key: string
  readonly selection: Selection
  readonly values: SlotValues
  /** Where the id of the post or comment goes. */
  readonly id: Slot
}

export type Topic = { readonly kind: 'posts' } | { readonly kind: 'comments'; readonly postId: number }

/** Who is told. */
export interface Subscriber {
  next(message: SharedMessage): void
  fail(refusal: Refusal): void
  complete(): void
}

export interface FanOutObserver {
  /** An event reached so many subscribers, so many seconds after it was committed. */
  delivered(subscribers: number, seconds: number): void
  /** What the event was about is gone by now. */
  skipped(): void
}

export interface FanOutParts {
  readonly store: PostStore
  readonly log: EventLog
  readonly observer: FanOutObserver
  readonly now: () => number
}

/**
 * Subscribers who want to know the same of the same form a group: an event is read once for each group, turned into one
 * message, and that is written to every socket.
 */
export class FanOut {
  readonly #store: PostStore
  readonly #log: EventLog
  readonly #observer: FanOutObserver
  readonly #now: () => number
  readonly #groups = new Map<string, Group>()
  /** Groups by what they listen to. */
  readonly #listening = new Map<string, Set<Group>>()
  #members = 0

  constructor({ store, log, observer, now }: FanOutParts) {
    this.#store = store
    this.#log = log
    this.#observer = observer
    this.#now = now
  }

  get groups(): number {
    return this.#groups.size
  }

  get subscriptions(): number {
    return this.#members
  }

  /** From now on. Returns what ends it. */
  async subscribe(subscription: Subscription, subscriber: Subscriber): Promise<() => void> {
    const group = this.#groupOf(subscription)
    const member: Member = { subscriber, since: undefined, held: [] }
    group.members.add(member)
    this.#members++
    const leave = () => this.#leave(group, member)
    try {
      // Asked for only now: what happens in between is held back, and then told or dropped.
      const since = await this.#log.now()
      // And the post only then: if it was deleted before that moment it is not found, if after it we are told.
      if (!(await this.#exists(subscription.topic))) {
        throw refusalFor(new AppError('not-found', 'Post not found'), [subscription.key])
      }
      member.since = since
      for (const tell of member.held.splice(0)) tell()
      return leave
    } catch (error) {
      leave()
      throw error
    }
  }

  /** Tells each event, and yields it when that is done. Throws where the store is away: nobody was told then. */
  async *deliver(events: readonly Event[]): AsyncGenerator<Event, void, undefined> {
    for (let from = 0; from < events.length; from += readAhead) {
      const readings = events.slice(from, from + readAhead).map(event => ({ event, messages: this.#read(event) }))
      for (const { messages } of readings) messages.catch(() => {}) // awaited in turn below
      for (const { event, messages } of readings) {
        this.#tell(event, await messages)
        yield event
      }
    }
  }

  #groupOf(subscription: Subscription): Group {
    const { topic, selection, values } = subscription
    const id = JSON.stringify([topic, selection, values])
    let group = this.#groups.get(id)
    if (group === undefined) {
      group = { id, subscription, members: new Set() }
      this.#groups.set(id, group)
      const topicId = idOf(topic)
      const listening = this.#listening.get(topicId) ?? new Set()
      this.#listening.set(topicId, listening.add(group))
    }
    return group
  }

  #leave(group: Group, member: Member): void {
    if (!group.members.delete(member)) return
    this.#members--
    if (group.members.size > 0) return
    this.#groups.delete(group.id)
    const topicId = idOf(group.subscription.topic)
    const listening = this.#listening.get(topicId)
    listening?.delete(group)
    if (listening?.size === 0) this.#listening.delete(topicId)
  }

  async #exists(topic: Topic): Promise<boolean> {
    if (topic.kind === 'posts') return true
    return (await this.#store.read(onePost, [topic.postId])) !== '{"post":null}'
  }

  #groupsFor(event: Event): readonly Group[] {
    if (event.kind === 'user-revoked') return []
    const topic: Topic = event.kind === 'post-added' ? { kind: 'posts' } : { kind: 'comments', postId: event.postId }
    return [...(this.#listening.get(idOf(topic)) ?? [])]
  }

  async #read(event: Event): Promise<readonly Reading[]> {
    return Promise.all(
      this.#groupsFor(event).map(async group => {
        const { subscription } = group
        const { selection, values, id } = subscription
        if (event.kind !== 'post-added' && event.kind !== 'comment-added') return { group, message: undefined }
        try {
          const subject = event.kind === 'post-added' ? event.postId : event.commentId
          const data = await this.#store.read(selection, values.with(id, subject))
          return { group, message: data === `{"${subscription.key}":null}` ? 'gone' : new SharedMessage(data) }
        } catch (error) {
          if (error instanceof AppError && error.code === 'unavailable') throw error
          return { group, message: failureOf(error) }
        }
      }),
    )
  }

  #tell(event: Event, readings: readonly Reading[]): void {
    let reached = 0
    for (const { group, message } of readings) {
      if (message === 'gone') {
        this.#observer.skipped()
        continue
      }
      for (const member of group.members) {
        if (member.since === undefined) member.held.push(() => this.#tellLate(event, group, member, message))
        else if (this.#tellMember(event, group, member, message)) reached++
      }
    }
    this.#count(event, reached)
  }

  #tellLate(event: Event, group: Group, member: Member, message: Reading['message']): void {
    this.#count(event, this.#tellMember(event, group, member, message) ? 1 : 0)
  }

  #count(event: Event, reached: number): void {
    if (reached > 0) this.#observer.delivered(reached, Math.max(0, this.#now() - event.at) / 1000)
  }

  #tellMember(event: Event, group: Group, member: Member, message: Reading['message']): boolean {
    if (member.since === undefined || !isAfter(event, member.since)) return false
    if (message instanceof SharedMessage) {
      member.subscriber.next(message)
      return true
    }
    // The post is gone, or what is asked for cannot be told: it ends here.
    this.#leave(group, member)
    if (message === undefined || message === 'gone') member.subscriber.complete()
    else member.subscriber.fail(message)
    return false
  }
}

interface Group {
  readonly id: string
  readonly subscription: Subscription
  readonly members: Set<Member>
}

interface Member {
  readonly subscriber: Subscriber
  /** Only what happened after this is told. Not known yet: it is held. */
  since: Moment | undefined
  readonly held: (() => void)[]
}

interface Reading {
  readonly group: Group
  /** Nothing: the subscription is over. */
  readonly message: SharedMessage | 'gone' | Refusal | undefined
}

/** Events that are read before the first of them is told. */
const readAhead = 8

const onePost: Selection = {
  wishes: [{ kind: 'one', key: 'post', name: 'post', id: 0, wishes: [{ kind: 'value', key: 'id', name: 'id' }] }],
}

function idOf(topic: Topic): string {
  return topic.kind === 'posts' ? 'posts' : `comments ${topic.postId}`
}

function failureOf(error: unknown): Refusal {
  if (error instanceof AppError && error.code === 'answer-too-large') return refusalFor(error, undefined)
  return refusal('INTERNAL_SERVER_ERROR', 'Internal server error')
}
