import type { Duet } from './connect.ts';
import type { Subscription as Events, Mutation, Query } from './schema.ts';
import type { Known, Selected, Selection } from './selection.ts';
import type { Subscription, Watcher } from './watch.ts';
/** Reads the selected fields. */
export declare function query<const S extends Selection<Query>>(duet: Duet, selection: Known<Query, S>, options?: {
    readonly signal?: AbortSignal;
}): Promise<Selected<Query, S>>;
/** Changes data, and reads the selected fields of the result. */
export declare function mutate<const S extends Selection<Mutation>>(duet: Duet, selection: Known<Mutation, S>, options?: {
    readonly signal?: AbortSignal;
}): Promise<Selected<Mutation, S>>;
/** Gets the selected fields of each event. */
export declare function subscribe<const S extends Selection<Events>>(duet: Duet, selection: Known<Events, S>, watcher: Watcher<Selected<Events, S>>): Subscription;
/** Like `subscribe`, but for `for await`. */
export declare function iterate<const S extends Selection<Events>>(duet: Duet, selection: Known<Events, S>, options?: Pick<Watcher<Selected<Events, S>>, 'onReadAnew' | 'after'>): AsyncIterableIterator<Selected<Events, S>>;
