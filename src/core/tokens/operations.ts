import { invalidToken } from '../access.ts'
import type { Actor, IdentifiedUser } from '../actor.ts'
import { AppError, tooManyRequests } from '../errors.ts'
import type { Passwords, RateLimiter, TokenSigner } from '../ports.ts'
import type { Credentials, UserStore } from '../store.ts'
import { loginKeyOf } from '../users/user.ts'

export interface TokensParts {
  readonly store: UserStore
  readonly passwords: Passwords
  readonly signer: TokenSigner
  readonly limits: LoginLimits
}

export interface LoginLimits {
  /** Counts all login attempts of a client. */
  readonly perClient: RateLimiter
  /** Counts the failed login attempts of a client with one e-mail address. */
  readonly perEmail: RateLimiter
}

export interface Login {
  readonly email: string
  readonly password: string
}

/** Long connections also need to know when the token expires. */
export interface AuthenticatedUser {
  readonly actor: IdentifiedUser
  /** Seconds since 1970. */
  readonly expiresAt: number
}

/** Logging in, and checking tokens. */
export class Tokens {
  readonly #store: UserStore
  readonly #passwords: Passwords
  readonly #signer: TokenSigner
  readonly #limits: LoginLimits

  constructor({ store, passwords, signer, limits }: TokensParts) {
    this.#store = store
    this.#passwords = passwords
    this.#signer = signer
    this.#limits = limits
  }

  async logIn(client: string, { email, password }: Login): Promise<string> {
    const loginKey = loginKeyOf(email)
    const attempt = `${client} ${loginKey}`
    await take(this.#limits.perClient, client)
    // Counted before the result is known, so that concurrent attempts cannot exceed the limit together.
    await take(this.#limits.perEmail, attempt)
    const user = await this.#userOf(loginKey, password, client).catch(async error => {
      await this.#limits.perEmail.giveBack(attempt) // the attempt did not reveal whether the password was right
      throw error
    })
    if (user === undefined) throw new AppError('unauthenticated', 'Invalid email or password')
    await this.#limits.perEmail.giveBack(attempt)
    return this.#signer.issue(user)
  }

  async #userOf(loginKey: string, password: string, client: string): Promise<Credentials | undefined> {
    const user = await this.#store.credentials(loginKey)
    return (await this.#passwords.matches(password, user?.passwordHash, client)) ? user : undefined
  }

  async identify(token: string): Promise<Actor> {
    return (await this.authenticate(token)).actor
  }

  /** The user of the token must still exist, and the token version must not have changed. */
  async authenticate(token: string): Promise<AuthenticatedUser> {
    const claims = await this.#signer.verify(token)
    const tokenState = claims === undefined ? undefined : await this.#store.tokenState(claims.userId)
    if (claims === undefined || tokenState === undefined || tokenState.tokenVersion !== claims.tokenVersion)
      throw invalidToken()
    return { actor: { kind: 'user', id: claims.userId, ...tokenState }, expiresAt: claims.expiresAt }
  }

  /** Whether a user whose token was accepted earlier would still be accepted, ignoring the expiry of the token. */
  async isStillValid({ id, tokenVersion }: IdentifiedUser): Promise<boolean> {
    return (await this.#store.tokenState(id))?.tokenVersion === tokenVersion
  }
}

async function take(limiter: RateLimiter, key: string): Promise<void> {
  const { allowed, resetSeconds } = await limiter.take(key)
  if (!allowed) throw tooManyRequests(resetSeconds)
}
