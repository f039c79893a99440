import { createPublicKey } from 'node:crypto'

/** The public key of the tokens that the benchmark signs. */
export function publicKey() {
  const [{ kty, crv, x }] = JSON.parse(process.env.TOKEN_KEYS).keys
  return createPublicKey({ key: { kty, crv, x }, format: 'jwk' })
}
