import type { Subscription, Watcher } from './watch.ts';
export interface Pausable extends Subscription {
    /** No more events until `resume`, which goes on after the last one. */
    pause(): void;
    resume(): void;
}
/**
 * The events of a subscription as an iterator. It begins at once, so that no event is missed before the first `next`. When
 * many events wait to be used, no more are taken from the service for a while.
 */
export declare function iterator<Data>(subscribe: (watcher: Pick<Watcher<Data>, 'onData' | 'onError' | 'onEnd'>) => Pausable): AsyncIterableIterator<Data>;
