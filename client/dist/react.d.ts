import { type Duet, type DuetError, type LiveState, type Schema, type Selected, type Selection, type Session } from './index.ts';
import type { Known } from './selection.ts';
/** The current session. The component is rendered again when somebody signs in or out, or the token is renewed. */
export declare function useSession(duet: Duet): Session | undefined;
export interface Reading<Data> {
    /** What was read last. It stays while it is read again, and if that fails. */
    readonly data: Data | undefined;
    /** Why the last attempt failed, if it did. */
    readonly error: Error | undefined;
    readonly isLoading: boolean;
    /** Reads again. It never changes, so it can be a dependency. While something is read, it waits for the end of that. */
    readonly refetch: () => void;
}
/** Reads the selected fields when the component appears, when the selection changes, and for each user who signs in. */
export declare function useQuery<const S extends Selection<Schema.Query>>(duet: Duet, selection: Known<Schema.Query, S>): Reading<Selected<Schema.Query, S>>;
/** Like `useQuery`, for any function that reads. It is called again when the key changes. */
export declare function useRead<Data>(duet: Duet, key: unknown, read: (signal: AbortSignal) => Promise<Data>): Reading<Data>;
/**
 * Calls `onChange` with the selected fields of each event, and without them when the current state must be read: when the
 * subscription has begun, when events may be missing, and when it has ended. `refetch` of `useQuery` is such a function.
 */
export declare function useLive<const S extends Selection<Schema.Subscription>>(duet: Duet, selection: Known<Schema.Subscription, S>, onChange: (data?: Selected<Schema.Subscription, S>) => void): LiveState & {
    readonly error: DuetError | undefined;
};
