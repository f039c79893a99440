import type { Config } from '../config.ts'
import { migrateDatabase } from '../storage/database.ts'

/** `duet migrate` */
export async function migrate({ database }: Config): Promise<number> {
  for (const { version, name } of await migrateDatabase(database)) console.log(`applied ${version} ${name}`)
  console.log('The schema is up to date.')
  return 0
}
