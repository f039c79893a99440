/** Time and timers, so that tests can hold them. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Runs something later. Returns the function that prevents it. */
  after(milliseconds: number, run: () => void): () => void
}
