import { type Config, ConfigError } from '../config.ts'
import { AppError } from '../core/errors.ts'
import { moveToPostgres } from '../storage/move.ts'
import { requireDatabase } from './database.ts'
import type { Options } from './users.ts'

export async function move(config: Config, { to }: Options): Promise<void> {
  const { database, tokenKeys } = config
  if (database.kind !== 'sqlite') throw new ConfigError('DATABASE_URL: must be the SQLite database to move')
  requireDatabase(config)
  const url = String(to)
  if (!/^postgres(?:ql)?:\/\//.test(url) || !URL.canParse(url))
    throw new AppError('bad-input', '--to: must be a postgres:// address')
  const counts = await moveToPostgres(database.path, url)
  for (const [table, rows] of counts) console.log(`${table}\t${rows}`)
  console.log('All rows were copied and compared. Set DATABASE_URL to the new address before the next start.')
  if (tokenKeys === undefined)
    console.log(`Set TOKEN_KEYS to a copy of ${database.path}-keys.json, so that tokens stay valid.`)
}
