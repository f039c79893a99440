import type { Duet } from './connect.ts'
import { type GraphDocument, textOf, type WithVariables } from './graphql.ts'
import { internalsOf } from './internals.ts'
import { iterator } from './iterator.ts'
import { Lines, type LiveState } from './lines.ts'
import { type Subscription, Watch, type Watcher } from './watch.ts'

export type { LiveState } from './lines.ts'
export type { Subscription, Watcher } from './watch.ts'

export interface Live {
  readonly state: LiveState
  /** Calls the listener at each change of the state. Returns a function that removes the listener. */
  onState(listener: (state: LiveState) => void): () => void
  subscribe<Data = unknown, Variables = Record<string, unknown>>(
    document: GraphDocument<Data, Variables>,
    variables: Variables | undefined,
    watcher: Watcher<Data>,
  ): Subscription
  /** Like `subscribe`, but for `for await`. Leaving the loop ends the subscription. Errors are thrown. */
  iterate<Data = unknown, Variables = Record<string, unknown>>(
    document: GraphDocument<Data, Variables>,
    ...rest: WithVariables<Variables, Pick<Watcher<Data>, 'onReadAnew' | 'after'>>
  ): AsyncIterableIterator<Data>
  /** Connects at once if it is waiting for the next attempt. */
  retryNow(): void
}

/** The subscriptions of a connection. All share one socket. */
export function live(duet: Duet): Live {
  let found = known.get(duet)
  if (found === undefined) {
    const parts = internalsOf(duet)
    // It runs before the subscriptions end: a caller who then subscribes anew needs a new connection.
    parts.closing.add(() => known.delete(duet))
    found = over(new Lines(duet.url, parts))
    known.set(duet, found)
  }
  return found
}

const known = new WeakMap<Duet, Live>()

function over(lines: Lines): Live {
  const subscribe = (document: string | object, variables: unknown, watcher: Watcher<never>) =>
    lines.subscribe(new Watch(textOf(document), variables, watcher))
  return {
    get state() {
      return lines.state
    },
    onState: listener => lines.onState(listener),
    subscribe: (document, variables, watcher) => subscribe(document, variables, watcher as never),
    iterate: ((document: string | object, variables: unknown, options?: object) =>
      iterator(watcher => subscribe(document, variables, { ...options, ...watcher }))) as Live['iterate'],
    retryNow: () => lines.retryNow(),
  }
}
