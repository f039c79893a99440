/**
 * The SQL expression for when a post or comment was last updated: this column, or the one for when it began to exist
 * while there was no update. A post that another program has added may have neither.
 */
export function updatedAtOf(updated: string, began: string): string {
  return `coalesce(${updated}, ${began}, '1970-01-01T00:00:00.000Z')`
}

/**
 * The time of an update. It is later than that of the update before, even in the same millisecond, so it identifies the
 * state. Undefined if the caller expects another state.
 */
export function timeOfUpdate(before: string, now: string, expected: string | null): string | undefined {
  if (expected !== null && expected !== before) return undefined
  return now > before ? now : new Date(Math.min(Date.parse(before) + 1, endOfTime)).toISOString()
}

/** Later instants have more than 24 characters. */
const endOfTime = Date.parse('9999-12-31T23:59:59.999Z')
