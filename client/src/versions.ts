/** The name of the property that keeps the `ETag` with a resource. Copies by `{ ...resource }` have it, JSON has not. */
export const etag: unique symbol = Symbol.for('duet.etag')

export interface Versioned {
  readonly [etag]?: string
}
