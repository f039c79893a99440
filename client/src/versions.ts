import type { Answer } from './http.ts'

/** The name of the property that keeps the `ETag` with a resource. Copies by `{ ...resource }` have it, JSON has not. */
export const etag: unique symbol = Symbol.for('duet.etag') as never

export interface Versioned {
  readonly [etag]?: string
}

/** The resource of an answer with its `ETag`. */
export function versioned<Resource extends object>(resource: Resource, { headers }: Answer): Resource & Versioned {
  const tag = headers.get('etag')
  return tag === null ? resource : { ...resource, [etag]: tag }
}

/** Lets a write happen only if the resource is still as it was read. An id, or a resource without `ETag`, is no condition. */
export function unchanged(resource: Versioned | number): Record<string, string> {
  const tag = typeof resource === 'number' ? undefined : resource[etag]
  return tag === undefined ? {} : { 'if-match': tag }
}
