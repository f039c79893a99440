import { AssertionError } from 'node:assert'
import { setImmediate as turn } from 'node:timers/promises'
import { Access } from '../../src/core/access.ts'
import { anonymous } from '../../src/core/actor.ts'
import { type AppError, unavailable } from '../../src/core/errors.ts'
import type { Event, EventContent, EventLog, NextEvents, Place, Topic } from '../../src/core/events.ts'
import { nameOf, placeToText, topicsOf } from '../../src/core/events.ts'
import { Posts } from '../../src/core/posts/operations.ts'
import type { Selection, SlotValues } from '../../src/core/selection.ts'
import type { PostStore } from '../../src/core/store.ts'
import { Feed } from '../../src/events/feed.ts'
import { MemoryEventBus } from '../../src/events/memory-event-bus.ts'
import { Executor } from '../../src/graphql/execute.ts'
import { Documents } from '../../src/graphql/language/documents.ts'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { FanOut, type FanOutParts } from '../../src/graphql/live/fan-out.ts'
import type { Subscriber, Subscription } from '../../src/graphql/live/groups.ts'
import type { Resume } from '../../src/graphql/live/messages.ts'
import { AutomaticDocuments } from '../../src/graphql/persisted/automatic.ts'
import { testTimeoutMs } from '../support/wait.ts'

/** A store whose answers, and their timing, the test controls. */
export class FakePosts implements PostStore {
  readonly reads: SlotValues[] = []
  /** The result of reading the post or comment with this id. */
  answer: (id: number, selection: Selection) => string | Promise<string> = (id, selection) =>
    `{"${selection.fields[0]?.key}":{"id":"${id}"}}`

  /** Whether there is such a post. */
  hasPost: PostStore['hasPost'] = async () => true

  async selectOne(selection: Selection, values: SlotValues): Promise<string | undefined> {
    const found = await this.select(selection, values)
    return found.endsWith(':null}') ? undefined : found
  }

  async select(selection: Selection, values: SlotValues): Promise<string> {
    this.reads.push(values)
    return this.answer(Number(values[0]), selection)
  }

  changePosts(): Promise<never> {
    throw new Error('Nothing is changed here')
  }
}

/** A log in memory. Positions begin at 1. */
export class FakeLog implements EventLog {
  readonly events: Event[] = []
  /** Events up to this position were deleted. */
  purged = 0
  /** The feed does not see later events yet. */
  shown = Number.POSITIVE_INFINITY
  /** The number of reads by topic. */
  pages = 0
  /** Whether reads fail. */
  isAway = false
  /** Delays the answers of `end`, which still show the state at the time of the call. */
  held: Promise<void> | undefined

  add(content: EventContent): Event {
    const event = { position: this.events.length + 1, at: 1000, ...content }
    this.events.push(event)
    return event
  }

  async end(): Promise<Place> {
    this.#mayFail()
    const { length } = this.events
    await this.held
    return { position: length, at: length === 0 ? 0 : 1000, readAt: 1000 }
  }

  async after({ position }: Place): Promise<NextEvents> {
    this.#mayFail()
    const events = this.events.slice(position, Math.min(this.shown, position + mostTogether))
    const more = events.length === mostTogether
    return { events, more, isNews: false, now: 1000, waitingSince: undefined, lost: false }
  }

  async ofTopic(topic: Topic, after: number, through: number): Promise<readonly Event[] | undefined> {
    this.pages++
    this.#mayFail()
    if (after < this.purged) return undefined
    const isWanted = (event: Event) => topicsOf(event).includes(nameOf(topic))
    return this.events.slice(after, through).filter(isWanted).slice(0, mostTogether)
  }

  async keeps({ position, at }: Place): Promise<boolean> {
    return position >= this.purged && (this.events[position - 1]?.at ?? 0) === at
  }

  async tellsEndOf(postId: number, after: number): Promise<boolean> {
    return this.events.slice(after).some(event => event.kind === 'post-deleted' && event.postId === postId)
  }

  async purge(): Promise<number> {
    return 0
  }

  #mayFail(): void {
    if (this.isAway) throw unavailable(new Error('away'))
  }
}

const mostTogether = 500

/** Records the messages to a subscriber: the data of events, then `complete` or the code of an error. */
export class FakeSubscriber implements Subscriber {
  readonly received: unknown[] = []
  readonly next: Subscriber['next'] = message => {
    const frame = message.frame('"x"')
    const { data, extensions } = JSON.parse(frame.subarray(frame.indexOf('{')).toString()).payload
    this.received.push(data)
    this.positions.push(extensions?.position)
    this.onNext()
  }
  readonly positions: (string | undefined)[] = []
  /** Called after each message. */
  onNext: () => void = () => {}
  #unread: Promise<void> | undefined
  readonly ready = () => this.#unread

  /** The client reads nothing more until the returned function is called. */
  stopReading(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#unread = promise
    return () => {
      this.#unread = undefined
      resolve()
    }
  }

  readonly end: Subscriber['end'] = refused => this.received.push(refused?.code ?? 'complete')
}

const schema = loadSchema()

/** The code path from the text of a subscription to its subscribers, and from the log to the feed, with a fake store. */
export class FanOutStage {
  readonly store = new FakePosts()
  readonly log = new FakeLog()
  readonly delivered: [subscribers: number, seconds: number][] = []
  skipped = 0
  replayed = 0
  readonly reported: AppError[] = []
  readonly executor: Executor
  readonly feed: Feed
  readonly fanOut: FanOut
  readonly #started: Promise<void>
  /** Closes the sockets of a user. */
  revoke: (userId: number) => Promise<void> = async () => {}

  constructor(parts: Partial<FanOutParts> = {}) {
    const bus = new MemoryEventBus()
    const posts = new Posts({ store: this.store, access: new Access('open'), bus })
    const documents = new AutomaticDocuments(new Documents({ schema, maxDepth: 5, suggestions: true }))
    this.executor = new Executor({ schema, documents, posts, maxComplexity: 1000 })
    const observer = {
      delivered: (...received: [number, number]) => this.delivered.push(received),
      skipped: () => this.skipped++,
      replayed: () => this.replayed++,
    }
    this.feed = new Feed({ log: this.log, bus, observer: { trouble() {} } })
    this.fanOut = new FanOut({
      store: this.store,
      log: this.log,
      feed: this.feed,
      observer,
      delivering: async (_event, deliver) => void (await deliver()),
      now: () => 1250,
      groups: 10_000,
      groupsPerClient: 200,
      readsAtOnce: 4,
      readMs: testTimeoutMs,
      report: error => this.reported.push(error),
      ...parts,
    })
    const wake = (event: Event) => this.fanOut.wake(event)
    this.#started = this.feed.start({ wake, revoke: userId => this.revoke(userId), lose() {} })
  }

  subscription(query: string, variables: Readonly<Record<string, unknown>> = {}): Subscription {
    const operation = this.executor.prepare({ query, operationName: undefined, variables })
    return this.executor.subscription(operation, variables, anonymous)
  }

  async subscribe(query: string, variables?: Readonly<Record<string, unknown>>, client = 'a client', resume?: Resume) {
    const subscriber = new FakeSubscriber()
    const leave = await this.fanOut.subscribe(this.subscription(query, variables), subscriber, client, resume)
    return { subscriber, received: subscriber.received, leave }
  }

  /** Subscribes to the events after this one. */
  async resume(query: string, event: Place, variables?: Readonly<Record<string, unknown>>) {
    return this.subscribe(query, variables, 'a client', { positions: true, after: placeToText(event) })
  }

  /** Adds events to the log, and waits until the feed has read them. */
  async add(...contents: readonly EventContent[]): Promise<readonly Event[]> {
    const events = contents.map(each => this.log.add(each))
    await this.read()
    return events
  }

  /** The feed reads what the log shows. */
  async read(): Promise<void> {
    await this.#started
    const end = Math.min(this.log.shown, this.log.events.length)
    this.feed.look()
    await soon(() => this.feed.position >= end)
  }

  /** Adds events to the log, and waits until all live groups have delivered them. */
  async happen(...contents: readonly EventContent[]): Promise<readonly Event[]> {
    const events = await this.add(...contents)
    await soon(() => this.fanOut.undeliveredSince === undefined)
    return events
  }
}

/** Waits for something that depends only on the test itself. */
export async function soon(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 10_000
  while (!condition()) {
    if (Date.now() > deadline) throw new AssertionError({ message: `Timed out waiting until ${condition}` })
    await turn()
  }
}

export const postAdded = (postId: number): EventContent => ({ kind: 'post-added', postId })

export function commentAdded(postId: number, commentId: number): EventContent {
  return { kind: 'comment-added', postId, commentId }
}

export const postDeleted = (postId: number): EventContent => ({ kind: 'post-deleted', postId })
