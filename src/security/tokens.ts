import { SignJWT } from 'jose/jwt/sign'
import { jwtVerify } from 'jose/jwt/verify'
import { idOf } from '../core/input.ts'
import type { Claims, Clock, Randomness, Session, TokenSigner } from '../core/ports.ts'
import type { TokenState } from '../core/users/user.ts'
import { LruCache } from '../lib/lru-cache.ts'
import type { TokenKey, TokenKeys } from './keys.ts'

export interface JwtOptions {
  readonly keys: TokenKeys
  readonly ttlSeconds: number
  readonly clock: Clock
  readonly randomness: Randomness
}

const issuer = 'duet'
const algorithms = ['EdDSA']
const required = ['iss', 'sub', 'role', 'ver', 'iat', 'exp', 'jti']
/** Longer tokens cannot be ours. */
const longestToken = 2_048
/** Two headers arrive joined by a comma. */
const tokenText = /^[\w.-]+$/
/** The size of the cache of verified tokens. Each entry takes a few hundred bytes. */
const cacheSize = 10_000

/** JSON Web Tokens signed with Ed25519. Only keys of our own set are used, whatever the header of a token says. */
export class JwtSigner implements TokenSigner {
  #keys: TokenKeys
  readonly #options: JwtOptions
  // A cache: verifying a signature costs a hundred times as much as this lookup.
  #known = new LruCache<string, Claims>(cacheSize)

  constructor(options: JwtOptions) {
    this.#keys = options.keys
    this.#options = options
  }

  /** Replaces the key set. Tokens of keys that are no longer in it become invalid. */
  use(keys: TokenKeys): void {
    this.#keys = keys
    this.#known = new LruCache(cacheSize)
  }

  /** Whether a token with a signature of this public key is still valid. Its `kid` may belong to another key by now. */
  knows(publicKey: string): boolean {
    return this.#keys.some(({ publicJwk }) => publicJwk.x === publicKey)
  }

  get publicKeys(): { readonly keys: readonly object[] } {
    return { keys: this.#keys.map(({ publicJwk }) => publicJwk) }
  }

  issue(user: TokenState & { readonly id: number }, { loggedInAt, endsAt }: Session): Promise<string> {
    const [{ id: kid, privateKey }] = this.#keys
    const now = this.#seconds()
    return new SignJWT({ role: user.role, ver: user.tokenVersion, auth_time: loggedInAt })
      .setProtectedHeader({ alg: 'EdDSA', kid, typ: 'JWT' })
      .setIssuer(issuer)
      .setSubject(String(user.id))
      .setIssuedAt(now)
      .setExpirationTime(Math.min(now + this.#options.ttlSeconds, endsAt))
      .setJti(this.#options.randomness.id())
      .sign(privateKey)
  }

  async verify(token: string): Promise<Claims | undefined> {
    const claims = this.#known.get(token) ?? (await this.#check(token))
    return claims !== undefined && claims.expiresAt > this.#seconds() ? claims : undefined
  }

  async #check(token: string): Promise<Claims | undefined> {
    if (token.length > longestToken || !tokenText.test(token)) return undefined
    // `use` may replace the keys and the cache while the signature is verified.
    const [known, keys] = [this.#known, this.#keys]
    try {
      const { payload, protectedHeader } = await jwtVerify(token, ({ kid }) => keyOf(keys, kid).publicKey, {
        algorithms,
        issuer,
        requiredClaims: required,
        currentDate: new Date(this.#options.clock.now()),
      })
      const { ver, exp, auth_time: loggedInAt = payload.iat } = payload // older tokens have no auth_time
      const userId = idOf(payload.sub ?? '')
      if (userId === undefined || typeof ver !== 'string' || exp === undefined || typeof loggedInAt !== 'number')
        return undefined
      const signedBy = keyOf(keys, protectedHeader.kid).publicJwk.x ?? ''
      const claims = { userId, tokenVersion: ver, expiresAt: exp, loggedInAt, signedBy }
      known.set(token, claims)
      return claims
    } catch {
      return undefined
    }
  }

  #seconds(): number {
    return Math.floor(this.#options.clock.now() / 1000)
  }
}

function keyOf(keys: TokenKeys, kid: string | undefined): TokenKey {
  const key = keys.find(({ id }) => id === kid)
  if (key === undefined) throw new Error('The key id of the token is unknown')
  return key
}
