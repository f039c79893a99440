import { createHash, randomBytes } from 'node:crypto'
import type { Secrets } from '../core/ports.ts'

/** Secrets of 256 random bits, so that one hash without salt is enough: nobody can try them all. */
export const secrets: Secrets = {
  make() {
    const secret = randomBytes(32).toString('base64url')
    return { secret, hash: hashOf(secret) }
  },
  hash: secret => (/^[\w-]{43}$/.test(secret) ? hashOf(secret) : undefined),
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}
