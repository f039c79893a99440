/** Something that happened, as the store wrote it down together with the change itself. */
export type Event = {
  readonly position: Position
  /** Milliseconds since 1970, by the clock of the store. */
  readonly at: number
} & Happening

export type Happening =
  | { readonly kind: 'post-added'; readonly postId: number }
  | { readonly kind: 'comment-added'; readonly postId: number; readonly commentId: number }
  | { readonly kind: 'post-deleted'; readonly postId: number }
  | { readonly kind: 'user-revoked'; readonly userId: number }

/** Where an event stands in the one order of all: by its transaction, and within that by its id. */
export interface Position {
  readonly transaction: number
  readonly id: number
}

export function isLater(one: Position, other: Position): boolean {
  return one.transaction > other.transaction || (one.transaction === other.transaction && one.id > other.id)
}

/**
 * What could be seen at a moment: every transaction below `from`, and of those up to `to` all that were not running. What
 * could not be seen then happened after it.
 */
export interface Moment {
  readonly from: number
  readonly to: number
  readonly running: ReadonlySet<number>
}

export function isAfter({ position: { transaction } }: Event, { from, to, running }: Moment): boolean {
  return transaction >= to || (transaction >= from && running.has(transaction))
}

/** The record of all events, in order, kept for a while. */
export interface EventLog {
  now(): Promise<Moment>
  /** The next events after this position; `more` tells whether others are there, or about to be seen. */
  after(position: Position): Promise<{ readonly events: readonly Event[]; readonly more: boolean }>
  /** Removes some of those whose time is over; says how many. */
  purge(): Promise<number>
}

/** Tells that something has happened, here or elsewhere. It may be told late or not at all; the log holds what it was. */
export interface EventBus {
  tell(): void
  listen(listener: () => void): void
}
