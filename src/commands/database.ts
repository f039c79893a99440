import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Config, ConfigError } from '../config.ts'
import { AppError } from '../core/errors.ts'
import { Argon2Passwords } from '../security/passwords.ts'
import { migrateDatabase, type OpenDatabase, openEngine } from '../storage/database.ts'
import { seedDemoData } from '../storage/entities/demo-data.ts'
import { timeoutsOf } from '../storage/timeouts.ts'
import { systemClock, systemRandomness } from '../wiring/base.ts'

export async function migrate({ database }: Config): Promise<void> {
  for (const { version, name } of await migrateDatabase(database, console.log))
    console.log(`applied ${version} ${name}`)
  console.log('The schema is up to date.')
}

export async function repair(config: Config): Promise<void> {
  requireDatabase(config)
  await withDatabase(config, async engine => {
    const mended = async (verb: 'mendCommentCounts' | 'mendEmailKeys' | 'mendNameKeys') => {
      let [rows, after] = [0, 0]
      do {
        const some = await engine.write(verb, after)
        rows += some.rows
        after = some.last
      } while (after > 0)
      return rows
    }
    console.log(`Posts whose number of comments was wrong, and is mended: ${await mended('mendCommentCounts')}`)
    console.log(`Users whose lower-cased e-mail was wrong, and is mended: ${await mended('mendEmailKeys')}`)
    console.log(`Users whose lower-cased name was wrong, and is mended: ${await mended('mendNameKeys')}`)
  })
}

export async function seed(config: Config): Promise<void> {
  refuseTemporary(config)
  const outcome = await withDatabase(config, engine => seedDemoData(engine, new Argon2Passwords(), systemRandomness))
  if (outcome === 'not empty') throw new AppError('conflict', 'the database is not empty; nothing was changed')
  console.log('The demo data was written.')
}

/** Opens the database for a command and closes it afterwards. A server may have it open at the same time. */
export async function withDatabase<Outcome>(
  { database, databaseTimeoutMs }: Config,
  work: (engine: OpenDatabase) => Promise<Outcome>,
): Promise<Outcome> {
  const observer = { read() {}, write() {}, commit() {}, trouble() {} }
  const timeouts = timeoutsOf(databaseTimeoutMs)
  await migrateDatabase(database, () => {})
  await using engine = await openEngine(database, { clock: systemClock, observer, timeouts })
  return await work(engine)
}

/** A command must not create a new database because the path is mistyped. */
export function requireDatabase(config: Config): void {
  refuseTemporary(config)
  const { database } = config
  if (database.kind === 'postgres' || existsSync(database.path)) return
  throw new ConfigError(`DATABASE_URL: there is no database at ${resolve(database.path)}`)
}

/** A temporary database is deleted when the command ends, so the command would have no effect. */
function refuseTemporary({ database }: Config): void {
  if (database.kind === 'postgres' || database.path !== ':memory:') return
  throw new ConfigError('DATABASE_URL: this command cannot use a temporary database')
}
