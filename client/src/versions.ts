import type { Answer } from './http.ts'

/** The property that holds the `ETag` of a resource. Copies by `{ ...resource }` have it, JSON does not. */
export const etag: unique symbol = Symbol.for('duet.etag') as never

export interface Versioned {
  readonly [etag]?: string
}

/** The resource of an answer with its `ETag`. */
export function versioned<Resource extends object>(resource: Resource, { headers }: Answer): Resource & Versioned {
  const tag = headers.get('etag')
  return tag === null ? resource : { ...resource, [etag]: tag }
}

/**
 * The header that makes a write fail if the resource has changed since it was read. Without an `ETag` there is no
 * condition.
 */
export function unchanged(resource: Versioned | number): Record<string, string> {
  const tag = typeof resource === 'number' ? undefined : resource[etag]
  return tag === undefined ? {} : { 'if-match': tag }
}
