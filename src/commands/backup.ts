import { type Config, ConfigError } from '../config.ts'
import { backupDatabase } from '../storage/database.ts'
import { complain } from './complain.ts'
import { requireFile } from './with-database.ts'

/** `duet backup` */
export async function backup({ database }: Config, file: string): Promise<number> {
  if (database.kind === 'postgres') throw new ConfigError('DATABASE_URL: PostgreSQL is backed up with its own pg_dump')
  requireFile(database)
  try {
    backupDatabase(database, file)
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return complain(`${file} exists already; nothing was written`)
    if (syscall === 'open') return complain(`${file} cannot be written: ${code}`)
    throw error
  }
  console.log(`The database is copied to ${file}.`)
  return 0
}
