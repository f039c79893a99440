import { type Actor, anonymous, type IdentifiedUser } from '../../core/actor.ts'
import { AppError } from '../../core/errors.ts'
import type { AuthenticatedUser } from '../../core/tokens/operations.ts'

export interface LoginParts {
  /** Authenticates an `Authorization` header. Rejects if it contains no valid token. */
  readonly authenticate: (authorization: string) => Promise<AuthenticatedUser>
  /** Whether a token that was accepted before has not been revoked since. */
  readonly isStillValid: (user: IdentifiedUser) => Promise<boolean>
  /** Whether tokens that this key has signed are still accepted. */
  readonly isKnownKey: (signedBy: string) => boolean
  readonly clock: { now(): number }
}

/** Ends when its client is not, or no longer, who its token says. */
interface Host {
  end(code: number, reason: string): void
  guarded(work: () => void): void
}

/** Who the client of a socket is: anonymous, or the user of its token until that expires or is revoked. */
export class Login {
  readonly #parts: LoginParts
  readonly #host: Host
  #signedBy: string | undefined
  #expiry: NodeJS.Timeout | undefined
  #isOver = false
  actor: Actor = anonymous

  constructor(parts: LoginParts, host: Host) {
    this.#parts = parts
    this.#host = host
  }

  /** If the token is not valid, the socket is closed. Rejects if that could not be found out. */
  async authenticate(authorization: string): Promise<void> {
    try {
      if (this.#isOver) return
      const { actor, signedBy, expiresAt } = await this.#parts.authenticate(authorization)
      this.actor = actor
      this.#signedBy = signedBy
      // Check again, now that these are set. A revocation during the first check could not find this socket.
      this.requireKey()
      if (await this.isStillValid()) this.#expireAt(expiresAt * 1000)
      else this.#host.end(4403, 'Forbidden')
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'unauthenticated')) throw error
      this.#host.end(4403, 'Forbidden')
    }
  }

  /** The token may have been revoked on another instance whose event has not arrived yet. */
  async isStillValid(): Promise<boolean> {
    return this.actor.kind === 'anonymous' || this.#parts.isStillValid(this.actor)
  }

  /** Ends the conversation if the key that signed its token was removed. */
  requireKey(): void {
    if (this.#signedBy !== undefined && !this.#parts.isKnownKey(this.#signedBy)) this.#host.end(4403, 'Forbidden')
  }

  #expireAt(instant: number): void {
    clearTimeout(this.#expiry)
    if (this.#isOver) return
    const left = instant - this.#parts.clock.now()
    // A timer can run for at most 24 days.
    const again = () => this.#host.guarded(() => this.#expireAt(instant))
    if (left > 0) this.#expiry = setTimeout(again, Math.min(left, 2_000_000_000))
    else this.#host.end(4403, 'Token expired')
  }

  stop(): void {
    this.#isOver = true
    clearTimeout(this.#expiry)
  }
}
