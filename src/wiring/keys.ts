import { type Config, ConfigError } from '../config.ts'
import { readKeys, type TokenKeys } from '../security/keys.ts'

/** Reads the keys that `TOKEN_KEYS` contains or names. */
export async function givenKeys({ tokenKeys, database }: Config): Promise<TokenKeys | undefined> {
  if (tokenKeys !== undefined) return readKeys(tokenKeys)
  if (database.kind === 'sqlite') return undefined
  throw new ConfigError('TOKEN_KEYS: is needed with PostgreSQL; "npm run -s duet -- keys generate" prints a set')
}
