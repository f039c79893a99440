import { waiting } from '../../lib/waits.ts'
import type { Access } from '../access.ts'
import type { Actor } from '../actor.ts'
import { AppError, unavailable } from '../errors.ts'
import type { EventBus } from '../events.ts'
import type { Decode } from '../input.ts'
import type { Passwords, Randomness, Secrets } from '../ports.ts'
import type { ResetStore } from '../store.ts'
import { type LoginLimits, take } from '../tokens/operations.ts'
import { loginKeyOf } from '../users/user.ts'

export interface PasswordResetsParts {
  readonly store: ResetStore
  readonly access: Access
  readonly limits: LoginLimits
  readonly passwords: Passwords
  readonly randomness: Randomness
  readonly secrets: Secrets
  readonly bus: EventBus
  /** Whether mails go anywhere. */
  readonly sendsMail: boolean
}

/** New passwords for users who have forgotten theirs. The secret in a mail stands for the former password. */
export class PasswordResets {
  readonly #parts: PasswordResetsParts

  constructor(parts: PasswordResetsParts) {
    this.#parts = parts
  }

  /** Only stores the request. Whether a user has the e-mail is found out later, so neither answer nor time reveal it. */
  async request(actor: Actor, client: string, decode: Decode<string>): Promise<void> {
    const { access, limits, store, sendsMail } = this.#parts
    access.require(actor, 'request a password reset')
    const emailKey = loginKeyOf(decode())
    if (!sendsMail) throw new AppError('unavailable', 'No mail is set up')
    await take(limits.perClient, client)
    await take(limits.perEmail, `${client} ${emailKey}`)
    if ((await store.requestReset(emailKey)) === 'full') throw unavailable(new Error('Too many mails wait'))
  }

  /** A wrong secret counts like a failed login. Hashing is expensive, so the secret is checked before it. */
  async complete(actor: Actor, client: string, secret: string, decode: Decode<string>): Promise<void> {
    const { access, limits, bus } = this.#parts
    access.require(actor, 'reset a password')
    const attempt = `${client} password reset`
    await take(limits.perEmail, attempt)
    const outcome = await this.#complete(secret, decode).catch(async error => {
      await limits.perEmail.giveBack(attempt) // the attempt did not reveal whether the secret was right, or it was
      throw error
    })
    if (outcome === 'absent') throw new AppError('not-found', 'This link is no longer valid')
    await limits.perEmail.giveBack(attempt)
    bus.notify()
  }

  async #complete(secret: string, decode: Decode<string>): Promise<'done' | 'absent'> {
    const { store, secrets, passwords, randomness } = this.#parts
    const hash = secrets.hash(secret)
    if (hash === undefined || !(await store.hasReset(hash))) return 'absent'
    const password = await waiting('password', passwords.hash(decode()))
    return await store.completeReset(hash, password, randomness.id())
  }
}
