import * as argon2 from '@node-rs/argon2'
import type { Passwords } from '../core/ports.ts'
import { Queue } from '../core/queue.ts'

/** The package's default algorithm is argon2id; the parameters are OWASP's: 19 MiB, two passes, one lane. */
const options = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/**
 * The hash to compare with if the user does not exist, so that the response time does not reveal that. It takes as long
 * as a real one. Nobody knows a password with this hash.
 */
const { memoryCost, timeCost, parallelism } = options
const decoy = `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${'A'.repeat(22)}$${'A'.repeat(43)}`

/**
 * Hashing is expensive by design, so few hashes run at once, few wait, and further requests are rejected. More may wait
 * than the rate and login limits allow one client in a minute. Logins and new passwords have separate queues, so neither
 * waits for the other. Together they leave one of Node's four threads to the rest of the service.
 */
export const hashing = { logins: { atOnce: 2, mayWait: 128 }, newPasswords: { atOnce: 1, mayWait: 128 } }

type Argon2 = Pick<typeof argon2, 'hash' | 'verify'>

export class Argon2Passwords implements Passwords {
  readonly #logins: Queue
  readonly #newPasswords: Queue
  readonly #argon2: Argon2

  constructor(bounds = hashing, functions: Argon2 = argon2) {
    this.#logins = new Queue(bounds.logins)
    this.#newPasswords = new Queue(bounds.newPasswords)
    this.#argon2 = functions
  }

  hash(password: string): Promise<string> {
    return this.#newPasswords.run(() => this.#argon2.hash(password, options))
  }

  async matches(password: string, known: string | undefined): Promise<boolean> {
    const matches = await this.#logins.run(() => this.#argon2.verify(known ?? decoy, password))
    return matches && known !== undefined
  }
}
