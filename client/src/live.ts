import type { Duet } from './connect.ts'
import type { DuetError } from './errors.ts'
import type { GraphDocument } from './graphql.ts'

/**
 * - `idle`: nothing is subscribed, so there is no socket.
 * - `connecting`: a socket is being opened.
 * - `live`: events arrive.
 * - `waiting`: the connection is lost; the next attempt is at `retryAt`.
 */
export type LiveState =
  | { readonly state: 'idle' | 'connecting' | 'live' }
  | { readonly state: 'waiting'; readonly retryAt: number }

export interface Watcher<Data> {
  /** Each event once and in order, also across lost connections and restarts. */
  readonly onData: (data: Data) => void
  /**
   * Events may be missing: the client was away for longer than the service keeps events, or lost its connection before
   * the first event. Read the current state; further events follow.
   */
  readonly onReadAnew?: () => void
  /** The subscription has ended with an error. Lost connections are no errors: they are renewed. */
  readonly onError?: (error: DuetError) => void
  /** The subscription has ended: its post was deleted. */
  readonly onEnd?: () => void
  /** Where to begin: a position of an earlier subscription. Default: now. */
  readonly after?: string | undefined
}

export interface Subscription {
  /** Of the last event. */
  readonly position: string | undefined
  close(): void
}

export interface Live {
  readonly state: LiveState
  /** Calls the listener at each change of the state. Returns the function that stops this. */
  onState(listener: (state: LiveState) => void): () => void
  subscribe<Data = unknown, Variables = Record<string, unknown>>(
    document: GraphDocument<Data, Variables>,
    variables: Variables | undefined,
    watcher: Watcher<Data>,
  ): Subscription
  /** The same, for `for await`. Leaving the loop ends the subscription. An error is thrown. */
  iterate<Data = unknown, Variables = Record<string, unknown>>(
    document: GraphDocument<Data, Variables>,
    variables?: Variables,
    options?: Pick<Watcher<Data>, 'onReadAnew' | 'after'>,
  ): AsyncIterableIterator<Data>
  /** Tries to connect now, if it waits. */
  retryNow(): void
}

/** The subscriptions of a connection. All share one socket. */
export function live(_duet: Duet): Live {
  throw new Error('Not written yet')
}
