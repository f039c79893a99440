import { demoLogin } from '../core/demo.ts'
import type { Passwords, Randomness } from '../core/ports.ts'
import type { Store } from '../core/store.ts'
import type { OpenDatabase } from '../storage/database.ts'
import { seedDemoData } from '../storage/entities/demo-data.ts'

/** Writes the demo data into an empty database. Returns whether its login works. */
export async function ensureDemoData(
  engine: OpenDatabase['engine'],
  store: Store,
  passwords: Passwords,
  randomness: Randomness,
): Promise<boolean> {
  await seedDemoData(engine, passwords, randomness)
  const user = await store.credentials(demoLogin.email)
  return passwords.matches(demoLogin.password, user?.passwordHash)
}
