import { AssertionError } from 'node:assert'
import { MemoryTally } from '../../src/cluster/tally.ts'
import { Access } from '../../src/core/access.ts'
import { anonymous } from '../../src/core/actor.ts'
import type { AppError } from '../../src/core/errors.ts'
import type { Event, EventContent, EventLog, Place, Position, Snapshot } from '../../src/core/events.ts'
import { Posts } from '../../src/core/posts/operations.ts'
import type { Selection, SlotValues } from '../../src/core/selection.ts'
import type { PostStore } from '../../src/core/store.ts'
import { Executor } from '../../src/graphql/execute.ts'
import { Documents } from '../../src/graphql/language/documents.ts'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { AutomaticDocuments } from '../../src/graphql/persisted/automatic.ts'
import { startOf } from '../../src/graphql/socket/shared-message.ts'
import {
  FanOut,
  type FanOutParts,
  type Subscriber,
  type Subscription,
} from '../../src/graphql/subscriptions/fan-out.ts'
import { testTimeoutMs } from '../support/wait.ts'

/** A store whose answers, and their timing, the test controls. */
export class FakePosts implements PostStore {
  readonly reads: SlotValues[] = []
  /** The result of reading the post or comment with this id. */
  answer: (id: number, selection: Selection) => string | Promise<string> = (id, selection) =>
    `{"${selection.fields[0]?.key}":{"id":"${id}"}}`

  /** Whether there is such a post. */
  exists: PostStore['exists'] = async () => true

  async find(selection: Selection, values: SlotValues): Promise<string | undefined> {
    const found = await this.read(selection, values)
    return found.endsWith(':null}') ? undefined : found
  }

  async read(selection: Selection, values: SlotValues): Promise<string> {
    this.reads.push(values)
    return this.answer(Number(values[0]), selection)
  }

  change(): Promise<never> {
    throw new Error('Nothing is changed here')
  }
}

/** A log in which every event is a separate, visible transaction. */
export class FakeLog implements EventLog {
  readonly events: Event[] = []
  /** Events up to this id were deleted. */
  purged = 0
  /** Delays the answers, which still show the state at the time of the call. */
  held: Promise<void> | undefined

  add(happening: EventContent): Event {
    const id = this.events.length + 1
    const event = { position: { transaction: id, id }, at: 1000, ...happening }
    this.events.push(event)
    return event
  }

  get moment(): Snapshot {
    const next = this.events.length + 1
    return { from: next, to: next, running: new Set() }
  }

  async end(): Promise<Position> {
    return { transaction: this.events.length + 1, id: 0 }
  }

  async now(): Promise<Snapshot> {
    const { moment } = this
    await this.held
    return moment
  }

  async after({ id }: Position) {
    const events = this.events.slice(id, id + 100)
    return { events, more: events.length === 100 }
  }

  async keeps({ position: { id }, at }: Place): Promise<boolean> {
    return this.events[id - 1]?.at === at && id > this.purged
  }

  async purge(): Promise<number> {
    return 0
  }
}

/** Records the messages to a subscriber: the data of events, then `complete` or the code of an error. */
export class FakeSubscriber implements Subscriber {
  readonly received: unknown[] = []
  readonly next: Subscriber['next'] = message => {
    const frame = message.frame(startOf('x'))
    const text = frame.subarray(frame.indexOf('{')).toString()
    const { data, extensions } = JSON.parse(text).payload
    this.received.push(data)
    this.positions.push(extensions?.position)
  }
  readonly positions: (string | undefined)[] = []
  /** Data that the client must read before more is sent. */
  unread: Promise<void> | undefined
  readonly ready = () => this.unread
  readonly fail: Subscriber['fail'] = ({ code }) => this.received.push(code)
  readonly complete: Subscriber['complete'] = () => this.received.push('complete')
}

const schema = loadSchema()

/** The code path from the text of a subscription to its subscribers, with a fake store. */
export class FanOutStage {
  readonly store = new FakePosts()
  readonly log = new FakeLog()
  readonly delivered: [subscribers: number, seconds: number][] = []
  skipped = 0
  replayed = 0
  readonly reported: AppError[] = []
  readonly executor: Executor
  readonly fanOut: FanOut

  constructor(parts: Partial<FanOutParts> = {}) {
    const posts = new Posts({ store: this.store, access: new Access('open'), bus: { notify() {}, listen() {} } })
    const documents = new AutomaticDocuments(new Documents({ schema, maxDepth: 5, suggestions: true }))
    this.executor = new Executor({ schema, documents, posts, maxComplexity: 1000 })
    const observer = {
      delivered: (...received: [number, number]) => this.delivered.push(received),
      skipped: () => this.skipped++,
      replayed: () => this.replayed++,
    }
    this.fanOut = new FanOut({
      store: this.store,
      log: this.log,
      observer,
      now: () => 1250,
      groups: 10_000,
      groupsPerClient: 200,
      groupTally: new MemoryTally(),
      readsAtOnce: 4,
      readMs: testTimeoutMs,
      report: error => this.reported.push(error),
      ...parts,
    })
  }

  subscription(query: string, variables: Readonly<Record<string, unknown>> = {}): Subscription {
    const operation = this.executor.prepare({ query, operationName: undefined, variables }, 'a client')
    return this.executor.subscription(operation, variables, anonymous)
  }

  async subscribe(query: string, variables?: Readonly<Record<string, unknown>>, client = 'a client') {
    const subscriber = new FakeSubscriber()
    const leave = await this.fanOut.subscribe(this.subscription(query, variables), subscriber, client)
    return { received: subscriber.received, leave }
  }

  /** Adds events to the log and delivers them. */
  async happen(...happenings: readonly EventContent[]): Promise<readonly Event[]> {
    return this.deliver(happenings.map(each => this.log.add(each)))
  }

  async deliver(events: readonly Event[]): Promise<readonly Event[]> {
    const delivery = async () => {
      const done: Event[] = []
      for await (const event of this.fanOut.deliver(events)) done.push(event)
      return done
    }
    return shortly('the events are delivered', delivery())
  }
}

/** A short timeout, for promises that depend only on the test itself. */
export async function shortly<Outcome>(what: string, promise: Promise<Outcome>): Promise<Outcome> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new AssertionError({ message: `Timed out waiting: ${what}` })), 30_000)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

export function postAdded(postId: number): EventContent {
  return { kind: 'post-added', postId }
}

export function commentAdded(postId: number, commentId: number): EventContent {
  return { kind: 'comment-added', postId, commentId }
}

export function postDeleted(postId: number): EventContent {
  return { kind: 'post-deleted', postId }
}
