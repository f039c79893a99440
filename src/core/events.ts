/** The store writes an event in the same transaction as the change that it reports, with the trace of that, if there is one. */
export type Event = Place & EventContent & { readonly traceparent?: string }

export type EventContent =
  | { readonly kind: PostEvent; readonly postId: number; readonly commentId?: null }
  | { readonly kind: CommentEvent; readonly postId: number; readonly commentId: number }
  | { readonly kind: 'user-revoked'; readonly userId: number }

type PostEvent = 'post-added' | 'post-updated' | 'post-deleted'
const commentEvents = ['comment-added', 'comment-updated', 'comment-deleted'] as const
type CommentEvent = (typeof commentEvents)[number]

/** A place in the log: the position of an event, and its time, which tells it from the same position in another log. */
export interface Place {
  readonly position: number
  /** Milliseconds since 1970, by the clock of the store. 0 if the event is no longer kept, or there was none yet. */
  readonly at: number
  /** Set if this is the end of the log, and not the place of an event that a client has seen: when it was read. */
  readonly readAt?: number
}

/** A place as an opaque text for clients. */
export function placeToText({ position, at, readAt }: Place): string {
  const numbers = readAt === undefined ? [position, at] : [position, at, readAt]
  return Buffer.from(numbers.join('-')).toString('base64url')
}

export function placeFromText(text: unknown): Place | undefined {
  if (typeof text !== 'string') return undefined
  const [, position, at, readAt] =
    /^(\d{1,16})-(\d{1,16})(?:-(\d{1,16}))?$/.exec(Buffer.from(text, 'base64url').toString()) ?? []
  if (at === undefined) return undefined
  const place = { position: Number(position), at: Number(at), ...(readAt !== undefined && { readAt: Number(readAt) }) }
  return placeToText(place) === text ? place : undefined
}

/** The subject of a subscription: events of one kind, of all posts or of the comments on one post. */
export type Topic =
  | { readonly kind: PostEvent; readonly postId?: never }
  | { readonly kind: CommentEvent; readonly postId: number }

/** The names of the topics that an event concerns. A deleted post ends those of its comments. */
export function topicsOf(event: Event): readonly string[] {
  switch (event.kind) {
    case 'user-revoked':
      return []
    case 'post-added':
    case 'post-updated':
      return [event.kind]
    case 'post-deleted':
      return [event.kind, ...commentEvents.map(kind => nameOf({ kind, postId: event.postId }))]
    default:
      return [nameOf(event)]
  }
}

export function nameOf({ kind, postId }: Topic): string {
  return postId === undefined ? kind : `${kind} ${postId}`
}

/** The id of the post or comment that subscribers receive. If there is none, the topic has ended. */
export function subjectOf(event: Event, topic: Topic): number | undefined {
  return event.kind === topic.kind ? (event.commentId ?? event.postId) : undefined
}

/** All events in order. Positions have no gaps. Events are kept for a limited time; the oldest are deleted first. */
export interface EventLog {
  /** Every event that was committed before the call is at this place or before it. */
  end(): Promise<Place>
  /** `written`: this process has written events since it last looked. */
  after(place: Place, written: boolean): Promise<NextEvents>
  /** Some events of a topic, or `undefined` if not all of them are kept. */
  ofTopic(topic: Topic, after: number, through: number): Promise<readonly Event[] | undefined>
  /** Whether all events after a client's place are still kept. */
  keeps(place: Place): Promise<boolean>
  /** Whether the log tells, after this position, that the post was deleted. */
  tellsEndOf(postId: number, after: number): Promise<boolean>
  /** Deletes some of the expired events and returns how many. */
  purge(): Promise<number>
}

export interface NextEvents {
  readonly events: readonly Event[]
  readonly more: boolean
  /** Other threads and instances may not know of these events yet. */
  readonly isNews: boolean
  /** When they were read, by the clock of the store. */
  readonly now: number
  /** When the oldest event happened that has no position yet. */
  readonly waitingSince: number | undefined
  /**
   * The log does not contain the place. So the database has lost events, as after a failover to a standby that was
   * behind, and uses their positions again.
   */
  readonly lost: boolean
}

/** The events that this process has read lately. */
export interface RecentEvents {
  /** The position of the latest one. Nobody receives an event before it is read here. */
  readonly position: number
  /** Whether all events after this position are known here. */
  reaches(position: number): boolean
  /** The first event of a topic after a position. */
  next(topic: Topic, after: number): Event | undefined
  /** Whether the store has answered a read of the log that began after this time of `performance.now()`. */
  hasAnsweredSince(time: number): boolean
}

/**
 * Says that there are new events. A notification may come late or get lost; the log always has the event itself.
 * `notify` tells the feed of this thread that events were written here; when it has read them, it announces them to
 * other threads and instances.
 */
export interface EventBus {
  notify(): void
  announce(): void
  listen(listener: (writtenHere: boolean) => void): void
}
