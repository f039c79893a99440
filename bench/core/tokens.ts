import { createPrivateKey, randomUUID, sign } from 'node:crypto'
import { generateKeySet } from '../../src/security/keys.ts'

/** Signs tokens of users, which Duet and the others accept: all of them have the key set. */
export class Tokens {
  readonly keys: string
  readonly #key
  readonly #head: string

  static async make(): Promise<Tokens> {
    return new Tokens(await generateKeySet())
  }

  private constructor(keys: string) {
    this.keys = keys
    const [jwk] = JSON.parse(keys).keys
    this.#key = createPrivateKey({ key: jwk, format: 'jwk' })
    this.#head = encoded({ alg: 'EdDSA', kid: jwk.kid, typ: 'JWT' })
  }

  of(user: number): string {
    const now = Math.floor(Date.now() / 1000)
    // All users of the benchmark's databases have this version.
    const claims = { role: 'member', ver: 'mark', auth_time: now, iss: 'duet', sub: String(user) }
    const text = `${this.#head}.${encoded({ ...claims, iat: now, exp: now + 3600, jti: randomUUID() })}`
    return `${text}.${sign(null, Buffer.from(text), this.#key).toString('base64url')}`
  }
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
