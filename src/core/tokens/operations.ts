import { waiting } from '../../lib/waits.ts'
import { type Access, invalidToken, notPermitted } from '../access.ts'
import type { Actor, IdentifiedUser } from '../actor.ts'
import { AppError, tooManyRequests } from '../errors.ts'
import type { EventBus } from '../events.ts'
import type { Claims, Clock, Passwords, Randomness, RateLimiter, Session, TokenSigner } from '../ports.ts'
import type { Credentials, UserStore } from '../store.ts'
import { loginKeyOf, type TokenState } from '../users/user.ts'

export interface TokensParts {
  readonly store: UserStore
  readonly passwords: Passwords
  readonly signer: TokenSigner
  readonly limits: LoginLimits
  /** How long a login and the tokens renewed from it last. */
  readonly sessionTtlSeconds: number
  readonly access: Access
  readonly clock: Clock
  readonly randomness: Randomness
  readonly bus: EventBus
}

export interface LoginLimits {
  /** Counts all login attempts of a client. */
  readonly perClient: RateLimiter
  /** Counts the failed login attempts of a client with one e-mail address. */
  readonly perEmail: RateLimiter
}

/** Long connections also need to know when the token expires, and whose signature it has. */
export interface AuthenticatedUser {
  readonly actor: IdentifiedUser
  readonly signedBy: string
  /** Seconds since 1970. */
  readonly expiresAt: number
}

/** Logging in and out, renewing tokens and checking them. */
export class Tokens {
  readonly #parts: TokensParts

  constructor(parts: TokensParts) {
    this.#parts = parts
  }

  async logIn(client: string, { email, password }: Readonly<Record<'email' | 'password', string>>): Promise<string> {
    const loginKey = loginKeyOf(email)
    const attempt = `${client} ${loginKey}`
    await take(this.#parts.limits.perClient, client)
    // Counted before the result is known, so that concurrent attempts cannot exceed the limit together.
    await take(this.#parts.limits.perEmail, attempt)
    const user = await this.#userOf(loginKey, password).catch(async error => {
      await this.#parts.limits.perEmail.giveBack(attempt) // the attempt did not reveal whether the password was right
      throw error
    })
    if (user === undefined) throw new AppError('unauthenticated', 'Invalid email or password')
    await this.#parts.limits.perEmail.giveBack(attempt)
    return this.#parts.signer.issue(user, this.#sessionOf(Math.floor(this.#parts.clock.now() / 1000)))
  }

  async #userOf(loginKey: string, password: string): Promise<Credentials | undefined> {
    const user = await this.#parts.store.credentials(loginKey)
    const matches = await waiting('password', this.#parts.passwords.matches(password, user?.passwordHash))
    return matches ? user : undefined
  }

  /** Gives a new token for a valid one. This is not a login, so it does not count as an attempt. */
  async renew(token: string): Promise<string> {
    const { claims, tokenState } = await this.#check(token)
    const session = this.#sessionOf(claims.loggedInAt)
    // A token outlives its session only if it was issued when SESSION_TTL_SECONDS was longer, or by an older version.
    if (session.endsAt * 1000 <= this.#parts.clock.now())
      throw new AppError('unauthenticated', 'The session has ended. Log in again.')
    return this.#parts.signer.issue({ id: claims.userId, ...tokenState }, session)
  }

  #sessionOf(loggedInAt: number): Session {
    return { loggedInAt, endsAt: loggedInAt + this.#parts.sessionTtlSeconds }
  }

  async revokeAll(actor: Actor): Promise<void> {
    this.#parts.access.require(actor, 'revoke own tokens')
    if (actor.kind === 'anonymous') throw notPermitted(actor)
    const outcome = await this.#parts.store.revokeTokens(actor, this.#parts.randomness.id())
    if (outcome === 'token revoked') throw invalidToken()
    this.#parts.bus.notify()
  }

  /** The user of the token must still exist, and the token version must not have changed. */
  async authenticate(token: string): Promise<AuthenticatedUser> {
    const { claims, tokenState } = await this.#check(token)
    const { userId, signedBy, expiresAt } = claims
    return { actor: { kind: 'user', id: userId, ...tokenState }, signedBy, expiresAt }
  }

  async #check(token: string): Promise<{ claims: Claims; tokenState: TokenState }> {
    const claims = await this.#parts.signer.verify(token)
    const tokenState = claims === undefined ? undefined : await this.#parts.store.tokenState(claims.userId)
    if (claims === undefined || tokenState === undefined || tokenState.tokenVersion !== claims.tokenVersion)
      throw invalidToken()
    return { claims, tokenState }
  }

  /** Whether a user whose token was accepted earlier would still be accepted, ignoring the expiry of the token. */
  async isStillValid({ id, tokenVersion }: IdentifiedUser): Promise<boolean> {
    return (await this.#parts.store.tokenState(id))?.tokenVersion === tokenVersion
  }
}

export async function take(limiter: RateLimiter, key: string): Promise<void> {
  const { allowed, resetSeconds } = await limiter.take(key)
  if (!allowed) throw tooManyRequests(resetSeconds)
}
