import type { Answer } from './http.ts';
/** The name of the property that keeps the `ETag` with a resource. Copies by `{ ...resource }` have it, JSON has not. */
export declare const etag: unique symbol;
export interface Versioned {
    readonly [etag]?: string;
}
/** The resource of an answer with its `ETag`. */
export declare function versioned<Resource extends object>(resource: Resource, { headers }: Answer): Resource & Versioned;
/** Lets a write happen only if the resource is still as it was read. An id, or a resource without `ETag`, is no condition. */
export declare function unchanged(resource: Versioned | number): Record<string, string>;
