import { type Config, ConfigError } from '../config.ts'
import { KeyError, readKeys, type TokenKeys } from '../security/keys.ts'

/** Reads the keys that `TOKEN_KEYS` contains or names. */
export async function givenKeys({ tokenKeys, database }: Config): Promise<TokenKeys | undefined> {
  if (tokenKeys === undefined) {
    if (database.kind === 'sqlite') return undefined
    throw new ConfigError('TOKEN_KEYS: is needed with PostgreSQL; "npm run -s duet -- keys generate" prints a set')
  }
  try {
    return await readKeys(tokenKeys)
  } catch (error) {
    throw error instanceof KeyError ? new ConfigError(`TOKEN_KEYS: ${error.message}`) : error
  }
}
