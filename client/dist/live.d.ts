import type { Duet } from './connect.ts';
import { type GraphDocument, type WithVariables } from './graphql.ts';
import { type LiveState } from './lines.ts';
import { type Subscription, type Watcher } from './watch.ts';
export type { LiveState } from './lines.ts';
export type { Subscription, Watcher } from './watch.ts';
export interface Live {
    readonly state: LiveState;
    /** Calls the listener at each change of the state. Returns a function that removes the listener. */
    onState(listener: (state: LiveState) => void): () => void;
    subscribe<Data = unknown, Variables = Record<string, unknown>>(document: GraphDocument<Data, Variables>, variables: Variables | undefined, watcher: Watcher<Data>): Subscription;
    /** Like `subscribe`, but for `for await`. Leaving the loop ends the subscription. Errors are thrown. */
    iterate<Data = unknown, Variables = Record<string, unknown>>(document: GraphDocument<Data, Variables>, ...rest: WithVariables<Variables, Pick<Watcher<Data>, 'onReadAnew' | 'after'>>): AsyncIterableIterator<Data>;
    /** Connects at once if it is waiting for the next attempt. */
    retryNow(): void;
}
/** The subscriptions of a connection. All share one socket. */
export declare function live(duet: Duet): Live;
