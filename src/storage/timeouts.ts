/** Timeouts of one store operation, in milliseconds. All are derived from one setting. */
export type Timeouts = ReturnType<typeof timeoutsOf>

export function timeoutsOf(operation: number) {
  return Object.freeze({
    /** For the whole operation except the commit, counted from the call. */
    operation,
    /** How much of the operation's time must be left to begin a transaction. */
    begin: Math.min(200, Math.round(operation / 6)),
    /** A commit that is given up has an unknown outcome, so it has most of the time that a client may wait. */
    commit: Math.round(operation * 0.6),
    /** For a lock of another transaction. Then this one rolls back, and is retried while the operation has time left. */
    lock: Math.min(250, Math.round(operation / 4)),
    /** A write is given up after this time if the disk hangs, so that not even an error arrives. */
    hang: operation * 4,
  })
}
