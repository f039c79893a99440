import type { Subscription, Watcher } from './watch.ts';
export interface Pausable extends Subscription {
    /** Stops the events until `resume`, which continues after the last one. */
    pause(): void;
    resume(): void;
}
/**
 * The events of a subscription as an iterator. It subscribes at once, so that no event is missed before the first
 * `next`. When many events wait in its buffer, it pauses the subscription.
 */
export declare function iterator<Data>(subscribe: (watcher: Pick<Watcher<Data>, 'onData' | 'onError' | 'onEnd'>) => Pausable): AsyncIterableIterator<Data>;
