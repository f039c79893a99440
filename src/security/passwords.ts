import * as argon2 from '@node-rs/argon2'
import { unavailable } from '../core/errors.ts'
import type { Passwords } from '../core/ports.ts'

/** The package's default algorithm is argon2id; the parameters are OWASP's: 19 MiB, two passes, one lane. */
const options = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** Hashing is made to be expensive, so few run at once, few may wait, and the rest is refused. */
export const gate = { atOnce: 2, mayWait: 64 }

export class Argon2Passwords implements Passwords {
  readonly #gate: typeof gate
  readonly #argon2: Pick<typeof argon2, 'hash' | 'verify'>
  #running = 0
  readonly #waiting: (() => void)[] = []
  /** Compared with when there is no user, so that nobody can tell by the time. */
  #decoy: Promise<string> | undefined

  constructor(bounds = gate, functions: Pick<typeof argon2, 'hash' | 'verify'> = argon2) {
    this.#gate = bounds
    this.#argon2 = functions
  }

  hash(password: string): Promise<string> {
    return this.#gated(() => this.#argon2.hash(password, options))
  }

  async matches(password: string, known: string | undefined): Promise<boolean> {
    this.#decoy ??= this.#argon2.hash('a password that nobody has', options)
    const decoy = await this.#decoy
    const matches = await this.#gated(() => this.#argon2.verify(known ?? decoy, password))
    return matches && known !== undefined
  }

  async #gated<Outcome>(work: () => Promise<Outcome>): Promise<Outcome> {
    if (this.#running >= this.#gate.atOnce) {
      if (this.#waiting.length >= this.#gate.mayWait)
        throw unavailable(new Error('Too many passwords wait to be hashed'))
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
