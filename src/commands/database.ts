import { existsSync } from 'node:fs'
import { type Config, ConfigError } from '../config.ts'
import { AppError } from '../core/errors.ts'
import { Argon2Passwords } from '../security/passwords.ts'
import { backupDatabase, migrateDatabase, type OpenDatabase, openForCommand } from '../storage/database.ts'
import { seedDemoData } from '../storage/entities/demo-data.ts'
import type { Mended } from '../storage/entities/mends.ts'
import { timeoutsOf } from '../storage/timeouts.ts'
import { systemClock, systemRandomness } from '../wiring/base.ts'

/** `duet migrate` */
export async function migrate({ database }: Config): Promise<void> {
  for (const { version, name } of await migrateDatabase(database, console.log))
    console.log(`applied ${version} ${name}`)
  console.log('The schema is up to date.')
}

/** `duet repair` */
export async function repair(config: Config): Promise<void> {
  requireDatabase(config)
  await withDatabase(config, async engine => {
    const all = async (verb: 'mendCommentCounts' | 'mendEmailKeys') => {
      let rows = 0
      for (let after: number | undefined = 0; after !== undefined; ) {
        const mended: Mended = await engine.write(verb, after)
        rows += mended.rows
        after = mended.last
      }
      return rows
    }
    console.log(`posts with a wrong number of comments: ${await all('mendCommentCounts')}`)
    console.log(`users with a wrong lower-cased e-mail: ${await all('mendEmailKeys')}`)
  })
  console.log('All of them are mended.')
}

/** `duet seed` */
export async function seed(config: Config): Promise<void> {
  refuseTemporary(config)
  const outcome = await withDatabase(config, engine => seedDemoData(engine, new Argon2Passwords(), systemRandomness))
  if (outcome === 'not empty') throw new AppError('conflict', 'the database is not empty; nothing was changed')
  console.log('The demo data was written.')
}

/** `duet backup` */
export async function backup(config: Config, file: string): Promise<void> {
  const { database } = config
  if (database.kind === 'postgres') throw new ConfigError('DATABASE_URL: PostgreSQL is backed up with its own pg_dump')
  requireDatabase(config)
  if (existsSync(file)) throw existsAlready(file)
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => stop.abort(signal))
  try {
    await backupDatabase(database.path, file, stop.signal)
  } catch (error) {
    if (stop.signal.aborted) process.kill(process.pid, stop.signal.reason) // it has no listener any more
    const { code = '', syscall, errcode } = error as NodeJS.ErrnoException & { errcode?: number }
    if (code === 'EEXIST') throw existsAlready(file)
    const failure = errcode === sqliteFull ? 'ENOSPC' : code
    if (syscall === undefined && failure !== 'ENOSPC') throw error
    throw new AppError('unavailable', `${file} cannot be written: ${failures[failure] ?? failure}`)
  }
  console.log(`The database is copied to ${file}.`)
}

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

/** A command must not create a new database because the path is mistyped. */
export function requireDatabase(config: Config): void {
  refuseTemporary(config)
  const { database } = config
  if (database.kind === 'postgres' || existsSync(database.path)) return
  throw new ConfigError(`DATABASE_URL: there is no database at ${database.path}`)
}

/** A temporary database is deleted when the command ends, so the command would have no effect. */
function refuseTemporary({ database }: Config): void {
  if (database.kind === 'postgres' || database.path !== ':memory:') return
  throw new ConfigError('DATABASE_URL: this command cannot use a temporary database')
}

const existsAlready = (file: string) => new AppError('conflict', `${file} exists already; nothing was written`)

const failures: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist',
  ENOSPC: 'the disk is full',
  EACCES: 'permission denied',
  EPERM: 'its file system has no hard links, or permission was denied',
}

/** The code of SQLite for a full disk. */
const sqliteFull = 13
