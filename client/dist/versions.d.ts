import type { Answer } from './http.ts';
/** The property that holds the `ETag` of a resource. Copies by `{ ...resource }` have it, JSON does not. */
export declare const etag: unique symbol;
export interface Versioned {
    readonly [etag]?: string;
}
/** The resource of an answer with its `ETag`. */
export declare function versioned<Resource extends object>(resource: Resource, { headers }: Answer): Resource & Versioned;
/**
 * The header that makes a write fail if the resource has changed since it was read. Without an `ETag` there is no
 * condition.
 */
export declare function unchanged(resource: Versioned | number): Record<string, string>;
