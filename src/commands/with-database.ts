import { systemClock, systemRandomness } from '../app.ts'
import { type Config, ConfigError, type DatabaseConfig } from '../config.ts'
import { isMissing, type OpenDatabase, openBeside } from '../storage/database.ts'
import { timeoutsOf } from '../storage/timeouts.ts'

/** Works on the database beside the server that may be serving it. */
export async function withDatabase<Outcome>(
  { database, databaseTimeoutMs }: Config,
  work: (engine: OpenDatabase['engine']) => Promise<Outcome>,
): Promise<Outcome> {
  const observer = { read() {}, write() {}, commit() {}, trouble() {} }
  const timeouts = timeoutsOf(databaseTimeoutMs)
  await using engine = await openBeside(database, {
    clock: systemClock,
    randomness: systemRandomness,
    observer,
    timeouts,
  })
  return await work(engine)
}

export function refuseTemporary(database: DatabaseConfig): void {
  if (database.kind === 'postgres' || database.path !== ':memory:') return
  throw new ConfigError('DATABASE_URL: a temporary database is gone before anything could be done with it')
}

/** A command must not create a new database where a path was mistyped. */
export function requireFile(database: DatabaseConfig): void {
  if (database.kind === 'postgres' || !isMissing(database)) return
  throw new ConfigError(`DATABASE_URL: there is no database at ${database.path}`)
}
