import type { Config } from '../config.ts'
import { Argon2Passwords } from '../security/passwords.ts'
import { seedDemoData } from '../storage/entities/demo-data.ts'
import { systemRandomness } from '../wiring/base.ts'
import { complain } from './complain.ts'
import { refuseTemporary, withDatabase } from './with-database.ts'

/** `duet seed` */
export async function seed(config: Config): Promise<number> {
  refuseTemporary(config.database)
  const seedWith = (engine: Parameters<typeof seedDemoData>[0]) =>
    seedDemoData(engine, new Argon2Passwords(), systemRandomness)
  const outcome = await withDatabase(config, seedWith)
  if (outcome === 'not empty') return complain('the database is not empty; nothing was changed')
  console.log('The demo data was written.')
  return 0
}
