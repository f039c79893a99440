import { hash, verify } from '@node-rs/argon2'
import { unavailable } from '../core/errors.ts'
import type { Passwords } from '../core/ports.ts'

/** The package's default algorithm is argon2id; the parameters are OWASP's: 19 MiB, two passes, one lane. */
const options = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** Hashing is made to be expensive, so few run at once, few may wait, and the rest is refused. */
const atOnce = 2
const mayWait = 64

export class Argon2Passwords implements Passwords {
  #running = 0
  readonly #waiting: (() => void)[] = []
  /** Compared with when there is no user, so that nobody can tell by the time. */
  #decoy: Promise<string> | undefined

  hash(password: string): Promise<string> {
    return this.#gated(() => hash(password, options))
  }

  async matches(password: string, known: string | undefined): Promise<boolean> {
    this.#decoy ??= hash('a password that nobody has', options)
    const decoy = await this.#decoy
    const matches = await this.#gated(() => verify(known ?? decoy, password))
    return matches && known !== undefined
  }

  async #gated<Outcome>(work: () => Promise<Outcome>): Promise<Outcome> {
    if (this.#running >= atOnce) {
      if (this.#waiting.length >= mayWait) throw unavailable(new Error('Too many passwords wait to be hashed'))
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    } else this.#running++
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }
}
