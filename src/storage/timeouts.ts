/** Timeouts of one store operation, in milliseconds. All are derived from one setting. */
export interface Timeouts {
  /** For the whole operation except the commit, counted from the call. */
  readonly operation: number
  /** How much of the operation's time must be left to begin a transaction. */
  readonly begin: number
  /** A commit that is given up has an unknown outcome, so it has most of the time that a client may wait. */
  readonly commit: number
  /**
   * For waiting for a lock of another transaction. After it, this transaction rolls back and is retried while the
   * operation has time left.
   */
  readonly lock: number
  /** A write is given up after this time if the disk hangs, so that not even an error arrives. */
  readonly hang: number
}

export function timeoutsOf(operation: number): Timeouts {
  return Object.freeze({
    operation,
    begin: Math.min(200, Math.round(operation / 6)),
    commit: Math.round(operation * 0.6),
    lock: Math.min(250, Math.round(operation / 4)),
    hang: operation * 4,
  })
}
