import type { Duet } from './connect.ts';
/** A list that is read page by page. Iterating over it yields the items of all pages. */
export interface Pages<Item> extends AsyncIterable<Item> {
    /** Yields one page after the other. */
    pages(): AsyncIterableIterator<readonly Item[]>;
    /** The first page, and whether there are more. */
    first(): Promise<{
        readonly items: readonly Item[];
        readonly more: boolean;
    }>;
    /** All items, or the first `most` ones. */
    toArray(most?: number): Promise<Item[]>;
}
export interface PageOptions {
    /** The number of items per page: 1 to 1000. */
    readonly limit?: number;
    /** Only items after the one with this id. */
    readonly after?: number;
    /** `-id`: the newest items first. */
    readonly sort?: 'id' | '-id';
    readonly signal?: AbortSignal;
}
/** A list of the service. The `Link` header leads to the next page. */
export declare function pagesOf<Raw, Item>(duet: Duet, path: string, { signal, ...query }: PageOptions & {
    readonly email?: string;
    readonly q?: string;
    readonly status?: string;
}, itemOf: (raw: Raw) => Item): Pages<Item>;
export declare function linkIn(header: string | null, name: string): string | undefined;
