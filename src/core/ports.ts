import type { TokenState } from './users/user.ts'

/** What the core needs from outside. `app.ts` passes it in, so that tests can pass in something else. */

export interface Clock {
  /** Milliseconds since 1970, UTC. */
  now(): number
}

export interface Randomness {
  /** An unguessable identifier, unique for all practical purposes. */
  id(): string
}

/** Receives notifications about the work of the store, for metrics and logs. Durations are in seconds. */
export interface StoreObserver {
  read(seconds: number): void
  write(seconds: number): void
  /** How many writes shared one durable commit. */
  commit(verbs: number): void
  /** An error whose details no caller sees. */
  trouble(message: string, error: unknown): void
}

export interface Passwords {
  /** Rejects with `unavailable` if too many passwords already wait for hashing. */
  hash(password: string): Promise<string>
  /** Takes the same time with and without a hash to compare. It waits for other comparisons only, not for `hash`. */
  matches(password: string, hash: string | undefined): Promise<boolean>
}

/** Secrets that are sent to a user. The store has only their hashes. */
export interface Secrets {
  make(): { readonly secret: string; readonly hash: string }
  /** Returns `undefined` for a text that cannot be a secret. */
  hash(secret: string): string | undefined
}

/** In plain text, to one address. */
export interface Mail {
  readonly to: string
  readonly subject: string
  readonly text: string
}

export interface Mailer {
  /** Resolves when somebody else has taken over the mail. */
  send(mail: Mail): Promise<void>
}

/** The content of a token that concerns its user. */
export interface Claims {
  readonly userId: number
  readonly tokenVersion: string
  /** Seconds since 1970. */
  readonly expiresAt: number
  /** When the user logged in, in seconds since 1970. Renewed tokens keep it. */
  readonly loggedInAt: number
  /** The public key that its signature fits. */
  readonly signedBy: string
}

/** A login and the tokens that were renewed from it. In seconds since 1970. */
export interface Session {
  readonly loggedInAt: number
  /** No token of the session is valid any more from then on. */
  readonly endsAt: number
}

export interface TokenSigner {
  issue(user: TokenState & { readonly id: number }, session: Session): Promise<string>
  /** Returns `undefined` for a token that we did not sign, or that has expired. */
  verify(token: string): Promise<Claims | undefined>
}

/** Counts in fixed windows. The window of a key starts at the first `take` with that key. */
export interface RateLimiter {
  readonly limit: number
  readonly windowMs: number
  take(key: string): Allowance | Promise<Allowance>
  /** Undoes one `take`. May return a promise. */
  giveBack(key: string): unknown
}

export interface Allowance {
  readonly allowed: boolean
  /** By how much the calls of `take` in this window exceed the limit. */
  readonly excess: number
  readonly remaining: number
  readonly resetSeconds: number
}

/** Clients far above a limit, whose connections are refused. Threads of one process know the same ones. */
export interface RefusedClients {
  /** Returns whether the client was not refused before. */
  add(client: string, seconds: number): boolean
  has(client: string): boolean
}
