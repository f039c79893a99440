import type { Internals } from './internals.ts';
import type { Pausable } from './iterator.ts';
import type { Watch } from './watch.ts';
/**
 * - `idle`: nothing is subscribed, so there is no socket.
 * - `connecting`: a socket is being opened.
 * - `live`: events arrive.
 * - `waiting`: the connection is lost; the next attempt is at `retryAt`, in milliseconds since 1970.
 */
export type LiveState = {
    readonly state: 'idle' | 'connecting' | 'live';
} | {
    readonly state: 'waiting';
    readonly retryAt: number;
};
/** Keeps the subscriptions of a connection alive, over one socket at a time. */
export declare class Lines {
    #private;
    constructor(url: string, parts: Internals);
    get state(): LiveState;
    onState(listener: (state: LiveState) => void): () => void;
    subscribe(watch: Watch): Pausable;
    retryNow(): void;
}
