import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
// Parts of jose: the whole of it takes three times as long to load.
import type { CryptoKey, JWK } from 'jose'
import { calculateJwkThumbprint } from 'jose/jwk/thumbprint'
import { exportJWK } from 'jose/key/export'
import { generateKeyPair } from 'jose/key/generate/keypair'
import { importJWK } from 'jose/key/import'
import { ConfigError } from '../core/errors.ts'

/** An Ed25519 key pair of this service. */
export type TokenKey = Awaited<ReturnType<typeof readKey>>

/** The first key signs; all keys verify. */
export type TokenKeys = readonly [TokenKey, ...TokenKey[]]

/** Why a key set cannot be used. The message never quotes any part of it. */
class KeyError extends Error {}

/** Reads a JWK Set, given as JSON or as the path of a file that contains it. Complaints begin with `named`. */
export async function readKeys(setOrPath: string, named = 'TOKEN_KEYS:'): Promise<TokenKeys> {
  try {
    const keys = parseSet(setOrPath.trimStart().startsWith('{') ? setOrPath : readText(setOrPath))
    const read = await Promise.all(keys.map(readKey))
    if (new Set(read.map(({ id }) => id)).size !== read.length) throw new KeyError('two keys have the same kid')
    return read as unknown as TokenKeys
  } catch (error) {
    throw error instanceof KeyError ? new ConfigError(`${named} ${error.message}`) : error
  }
}

/** Reads the key set from a file and creates it if it does not exist. Only the owner of the file can read it. */
export async function readOrCreateKeys(path: string): Promise<TokenKeys> {
  if (!existsSync(path)) {
    // The rename makes the file complete or absent, even after a crash. Half a key would make every later start fail.
    const draft = `${path}.new`
    writeFileSync(draft, await generateKeySet(), { mode: 0o600, flush: true })
    renameSync(draft, path)
  }
  return readKeys(path, `DATABASE_URL: its key file ${path}`)
}

/** A JWK Set with one new key, as text for `TOKEN_KEYS`. */
export async function generateKeySet(): Promise<string> {
  const { privateKey } = await generateKeyPair('Ed25519', { extractable: true })
  const jwk = await exportJWK(privateKey)
  return `${JSON.stringify({ keys: [{ ...jwk, kid: await calculateJwkThumbprint(jwk), alg: 'EdDSA', use: 'sig' }] })}\n`
}

/** A secret that all processes with the same first key share, because Ed25519 signatures are deterministic. */
export async function secretOf([{ privateKey }]: TokenKeys, purpose: string): Promise<string> {
  const signature = await crypto.subtle.sign('Ed25519', privateKey, Buffer.from(`duet: ${purpose}`))
  return Buffer.from(signature).toString('base64url')
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw new KeyError('is neither a JWK Set nor the path of a readable file')
  }
}

function parseSet(json: string): readonly JWK[] {
  try {
    const { keys } = JSON.parse(json) as { keys?: unknown }
    if (Array.isArray(keys) && keys.length > 0) return keys as JWK[]
  } catch {
    // The error below does not quote the input.
  }
  throw new KeyError('is not a JWK Set with at least one key')
}

async function readKey(jwk: JWK) {
  const { kty, crv, x, d, kid } = jwk ?? {}
  if (kty !== 'OKP' || crv !== 'Ed25519' || typeof x !== 'string' || typeof d !== 'string') {
    throw new KeyError('holds a key that is not a private Ed25519 key')
  }
  if (kid !== undefined && (typeof kid !== 'string' || kid === ''))
    throw new KeyError('holds a key with an unusable kid')
  try {
    const id = kid ?? (await calculateJwkThumbprint(jwk))
    const publicJwk = { kty, crv, x, kid: id, alg: 'EdDSA', use: 'sig' }
    const privateKey = (await importJWK({ kty, crv, x, d }, 'EdDSA')) as CryptoKey
    const publicKey = (await importJWK({ kty, crv, x }, 'EdDSA')) as CryptoKey
    return { id, privateKey, publicKey, publicJwk }
  } catch {
    throw new KeyError('holds a key that cannot be read')
  }
}
