import { type Config, ConfigError, type DatabaseConfig } from '../config.ts'
import { isMissing, type OpenDatabase, openForCommand } from '../storage/database.ts'
import { timeoutsOf } from '../storage/timeouts.ts'
import { systemClock } from '../wiring/base.ts'

/** Opens the database for a command and closes it afterwards. A server may have it open at the same time. */
export async function withDatabase<Outcome>(
  { database, databaseTimeoutMs }: Config,
  work: (engine: OpenDatabase['engine']) => Promise<Outcome>,
): Promise<Outcome> {
  const observer = { read() {}, write() {}, commit() {}, trouble() {} }
  const timeouts = timeoutsOf(databaseTimeoutMs)
  await using engine = await openForCommand(database, { clock: systemClock, observer, timeouts })
  return await work(engine)
}

/** A temporary database is deleted when the command ends, so the command would have no effect. */
export function refuseTemporary(database: DatabaseConfig): void {
  if (database.kind === 'postgres' || database.path !== ':memory:') return
  throw new ConfigError('DATABASE_URL: this command cannot use a temporary database')
}

/** A command must not create a new database because the path is mistyped. */
export function requireFile(database: DatabaseConfig): void {
  if (database.kind === 'postgres' || !isMissing(database)) return
  throw new ConfigError(`DATABASE_URL: there is no database at ${database.path}`)
}
