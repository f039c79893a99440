/** How long the store may take for one operation, in milliseconds. All of it follows from one setting. */
export interface Timeouts {
  /** For everything but the commit, from the call on. */
  readonly operation: number
  /** What must be left of it to begin a transaction at all. */
  readonly begin: number
  readonly commit: number
  /** For asking whether a commit happened whose answer was lost. */
  readonly doubt: number
  /** For another transaction's lock. Then this transaction gives way and tries again, while the operation has time. */
  readonly lock: number
  /** After this time a write to a disk that answers nothing, not even an error, is given up. */
  readonly hang: number
}

export function timeoutsOf(operation: number): Timeouts {
  return Object.freeze({
    operation,
    begin: Math.min(200, Math.round(operation / 6)),
    commit: Math.round(operation / 3),
    doubt: Math.round(operation * 0.6),
    lock: Math.min(250, Math.round(operation / 4)),
    hang: operation * 4,
  })
}
