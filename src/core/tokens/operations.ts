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
  /** All attempts of a client. */
  readonly perClient: RateLimiter
  /** A client's failed attempts on one e-mail. */
  readonly perEmail: RateLimiter
}

export interface Login {
  readonly email: string
  readonly password: string
}

/** For those who stay, it matters how long. */
export interface Admitted {
  readonly actor: IdentifiedUser
  /** Seconds since 1970. */
  readonly expiresAt: number
}

/** Who somebody is: getting a token, and what a token is worth. */
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
    // Taken before the answer is known, so that attempts at the same time cannot pass together.
    await take(this.#limits.perEmail, attempt)
    const user = await this.#userOf(loginKey, password, client).catch(async error => {
      await this.#limits.perEmail.giveBack(attempt) // nobody learned whether the password was right
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
    return (await this.admit(token)).actor
  }

  /** A token's user must still be there, and unchanged in what tokens depend on. */
  async admit(token: string): Promise<Admitted> {
    const claims = await this.#signer.verify(token)
    const standing = claims === undefined ? undefined : await this.#store.standing(claims.userId)
    if (claims === undefined || standing === undefined || standing.mark !== claims.mark) throw invalidToken()
    return { actor: { kind: 'user', id: claims.userId, ...standing }, expiresAt: claims.expiresAt }
  }

  /** Whether somebody who was admitted before would be admitted now, but for the time. */
  async stillStands({ id, mark }: IdentifiedUser): Promise<boolean> {
    return (await this.#store.standing(id))?.mark === mark
  }
}

async function take(limiter: RateLimiter, key: string): Promise<void> {
  const { allowed, resetSeconds } = await limiter.take(key)
  if (!allowed) throw tooManyRequests(resetSeconds)
}
