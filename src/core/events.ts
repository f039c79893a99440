/** The store writes an event in the same transaction as the change that it reports. */
export type Event = {
  readonly position: Position
  /** Milliseconds since 1970, by the clock of the store. */
  readonly at: number
} & EventContent

export type EventContent =
  | { readonly kind: 'post-added'; readonly postId: number }
  | { readonly kind: 'comment-added'; readonly postId: number; readonly commentId: number }
  | { readonly kind: 'post-deleted'; readonly postId: number }
  | { readonly kind: 'user-revoked'; readonly userId: number }

/** The position of an event in the total order of events: sorted by transaction, then by id. */
export interface Position {
  readonly transaction: number
  readonly id: number
}

export function isLater(one: Position, other: Position): boolean {
  return one.transaction > other.transaction || (one.transaction === other.transaction && one.id > other.id)
}

/** A position with the time of its event, which distinguishes it from the same position in another log. */
export type Place = Pick<Event, 'position' | 'at'>

/** A place as an opaque text for clients. */
export function placeToText({ position: { transaction, id }, at }: Place): string {
  return Buffer.from(`${transaction}.${id}.${at}`).toString('base64url')
}

export function placeFromText(text: unknown): Place | undefined {
  if (typeof text !== 'string' || text.length > longestPlace) return undefined
  const [, transaction, id, at] =
    /^(\d{1,16})\.(\d{1,16})\.(\d{1,16})$/.exec(Buffer.from(text, 'base64url').toString()) ?? []
  if (at === undefined) return undefined
  const place = { position: { transaction: Number(transaction), id: Number(id) }, at: Number(at) }
  return placeToText(place) === text ? place : undefined
}

const longestPlace = 70

/**
 * A snapshot: which transactions were visible at one moment. All below `from` were visible, none from `to` on, and of
 * those in between all that were not `running`. An event of a transaction that was not visible happened after the
 * snapshot.
 */
export interface Snapshot {
  readonly from: number
  readonly to: number
  readonly running: ReadonlySet<number>
}

export function isAfter({ position: { transaction } }: Event, { from, to, running }: Snapshot): boolean {
  return transaction >= to || (transaction >= from && running.has(transaction))
}

/** All events in order. Events are kept for a limited time. */
export interface EventLog {
  now(): Promise<Snapshot>
  /** A position before all events that become visible from now on. */
  end(): Promise<Position>
  after(position: Position): Promise<NextEvents>
  /** Whether this event, and so every later one, is still in the log. */
  keeps(place: Place): Promise<boolean>
  /** Deletes some of the expired events and returns how many. */
  purge(): Promise<number>
}

export interface NextEvents {
  readonly events: readonly Event[]
  /** Further events exist, or may soon become visible. */
  readonly more: boolean
  /** When the oldest event happened that cannot be delivered yet, because an earlier one may still appear. */
  readonly heldSince?: number | undefined
  /**
   * The log ends before the position. So the database has lost events, as after a failover to a standby that was behind,
   * and will use these positions again.
   */
  readonly lost?: boolean
}

/**
 * Notifies that an event was written, by this process or another one. A notification may come late or get lost; the log
 * always has the event itself.
 */
export interface EventBus {
  notify(): void
  listen(listener: () => void): void
}
