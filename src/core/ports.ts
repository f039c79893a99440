/** What the core needs from the world, handed in by `app.ts`, so that tests can hand in something else. */

export interface Clock {
  /** Milliseconds since 1970, UTC. */
  now(): number
}

export interface Randomness {
  /** An unguessable identifier, unique for all practical purposes. */
  id(): string
}

/** Told what the store does; metrics are made of it. Durations are in seconds. */
export interface StoreObserver {
  read(seconds: number): void
  write(seconds: number): void
  /** How many verbs shared one durable commit. */
  commit(verbs: number): void
  /** Something went wrong that no caller is told about in detail. */
  trouble(message: string, error: unknown): void
}
