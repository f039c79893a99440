import { existsSync } from 'node:fs'
import { type Config, ConfigError } from '../config.ts'
import { backupDatabase } from '../storage/database.ts'
import { complain } from './complain.ts'
import { requireDatabase } from './database.ts'

/** `duet backup` */
export async function backup(config: Config, file: string): Promise<number> {
  const { database } = config
  if (database.kind === 'postgres') throw new ConfigError('DATABASE_URL: PostgreSQL is backed up with its own pg_dump')
  requireDatabase(config)
  if (existsSync(file)) return complain(existsAlready(file))
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => stop.abort(signal))
  try {
    await backupDatabase(database, file, stop.signal)
  } catch (error) {
    if (stop.signal.aborted) process.kill(process.pid, stop.signal.reason) // it has no listener any more
    const { code = '', syscall, errcode } = error as NodeJS.ErrnoException & { errcode?: number }
    if (code === 'EEXIST') return complain(existsAlready(file))
    if (syscall !== undefined) return complain(`${file} cannot be written: ${failures[code] ?? code}`)
    if (errcode === sqliteFull) return complain(`${file} cannot be written: ${failures.ENOSPC}`)
    throw error
  }
  console.log(`The database is copied to ${file}.`)
  return 0
}

const existsAlready = (file: string) => `${file} exists already; nothing was written`

const failures: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist',
  ENOSPC: 'the disk is full',
  EACCES: 'permission denied',
  EPERM: 'its file system has no hard links, or permission was denied',
}

/** The code of SQLite for a full disk. */
const sqliteFull = 13
