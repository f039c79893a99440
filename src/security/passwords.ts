import * as argon2 from '@node-rs/argon2'
import { Gate } from '../core/gate.ts'
import type { Passwords } from '../core/ports.ts'

/** The package's default algorithm is argon2id; the parameters are OWASP's: 19 MiB, two passes, one lane. */
const options = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** Hashing is made to be expensive, so few run at once, few may wait, and the rest is refused. */
export const hashing = { atOnce: 2, mayWait: 64 }

type Argon2 = Pick<typeof argon2, 'hash' | 'verify'>

export class Argon2Passwords implements Passwords {
  readonly #gate: Gate
  readonly #argon2: Argon2
  /** Compared with when there is no user, so that nobody can tell by the time. */
  #decoy: Promise<string> | undefined

  constructor(bounds = hashing, functions: Argon2 = argon2) {
    this.#gate = new Gate(bounds)
    this.#argon2 = functions
  }

  hash(password: string): Promise<string> {
    return this.#gate.pass(() => this.#argon2.hash(password, options))
  }

  async matches(password: string, known: string | undefined): Promise<boolean> {
    this.#decoy ??= this.#makeDecoy()
    const decoy = await this.#decoy
    const matches = await this.#gate.pass(() => this.#argon2.verify(known ?? decoy, password))
    return matches && known !== undefined
  }

  #makeDecoy(): Promise<string> {
    return this.#argon2.hash('a password that nobody has', options).catch(error => {
      this.#decoy = undefined // the next one tries again
      throw error
    })
  }
}
