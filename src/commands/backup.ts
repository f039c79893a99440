import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Config, ConfigError, processEnvironment } from '../config.ts'
import { AppError } from '../core/errors.ts'
import { backUpDatabase, backupName, removeOldBackups } from '../storage/backup.ts'
import { requireDatabase } from './database.ts'

/** `duet backup`: to the given file, or to `BACKUP_DIR`, where the newest `BACKUP_KEEP` backups stay. */
export async function backup(config: Config, given: string | undefined): Promise<void> {
  const { database, backupDir, backupKeep } = config
  requireDatabase(config)
  // Its settings could stay with connections that the pooler lends to the service next.
  if (database.kind === 'postgres' && database.pooler)
    throw new ConfigError('DATABASE_POOLER: pg_dump needs the address of PostgreSQL itself, with DATABASE_POOLER=none')
  if (given === undefined && backupDir === undefined) throw new ConfigError('BACKUP_DIR: set it, or name a file')
  const now = Date.now()
  const file = resolve(given ?? join(backupDir ?? '', backupName(database.kind, now)))
  if (existsSync(file)) throw existsAlready(file)
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => stop.abort(signal))
  try {
    await backUpDatabase(database, file, stop.signal, processEnvironment())
  } catch (error) {
    if (stop.signal.aborted) process.kill(process.pid, stop.signal.reason) // it has no listener any more
    const { code = '', syscall, errcode } = error as NodeJS.ErrnoException & { errcode?: number }
    if (code === 'EEXIST') throw existsAlready(file)
    const failure = errcode === sqliteFull ? 'ENOSPC' : code
    if (syscall === undefined && failure !== 'ENOSPC') throw error
    throw new AppError('unavailable', `${file} cannot be written: ${failures[failure] ?? failure}`)
  }
  if (given === undefined && backupDir !== undefined) removeOldBackups(backupDir, backupKeep, now)
  console.log(`The database is copied to ${file}.`)
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
