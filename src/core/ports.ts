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

export interface Passwords {
  /** Rejects with `unavailable` when too many wait to be hashed already. Clients take turns. */
  hash(password: string, client?: string): Promise<string>
  /** Takes the same time whether there is a hash to compare with or not. Waits for other comparisons only. */
  matches(password: string, hash: string | undefined, client?: string): Promise<boolean>
}

/** What a token says about its user. */
export interface Claims {
  readonly userId: number
  /** See `Standing.mark`. */
  readonly mark: string
  /** Seconds since 1970. */
  readonly expiresAt: number
}

export interface TokenSigner {
  issue(user: { readonly id: number; readonly role: string; readonly mark: string }): Promise<string>
  /** Nothing for a token that is not ours, or is no longer. */
  verify(token: string): Promise<Claims | undefined>
}

/** Counts in fixed windows, each from the first take of its key on. */
export interface RateLimiter {
  readonly limit: number
  readonly windowMs: number
  take(key: string): Allowance | Promise<Allowance>
  /** Undoes one take. */
  giveBack(key: string): void | Promise<void>
}

export interface Allowance {
  readonly allowed: boolean
  /** How many takes of this window went beyond the limit. */
  readonly excess: number
  readonly remaining: number
  readonly resetSeconds: number
}
