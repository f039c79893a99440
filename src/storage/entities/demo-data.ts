import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { demoLogin } from '../../core/demo.ts'
import type { Passwords, Randomness } from '../../core/ports.ts'
import type { Engine } from '../engine.ts'
import { sql } from '../sql.ts'
import type { Steps } from '../verb.ts'

/**
 * Fills an empty database with demo data. The ids are fixed, so the documentation can name them. A database that is not
 * empty is left unchanged.
 */
export async function seedDemoData(
  engine: Engine<typeof demoVerbs>,
  passwords: Passwords,
  randomness: Randomness,
): Promise<'seeded' | 'not empty'> {
  const [row] = await engine.read(emptiness)
  if (row?.[0] !== 1) return 'not empty'
  const texts = readFileSync(file, 'utf8').split(/;\s+/).filter(Boolean)
  return engine.write('seedDemoData', texts, await passwords.hash(demoLogin.password), randomness.id())
}

const file = join(import.meta.dirname, '..', '..', '..', 'migrations', 'demo-data.sql')

// The counter is above 1 if there ever was a user, even if all users were deleted.
const emptiness = sql`select count(*) from counters where name = 'users' and next = 1
                      and not exists (select 1 from users) and not exists (select 1 from orders)`

export const demoVerbs = {
  *seedDemoData(texts: readonly string[], hash: string, tokenVersion: string): Steps<'seeded' | 'not empty'> {
    yield sql`select next from counters where name = 'users' for update`
    const [empty] = yield emptiness
    if (empty?.[0] !== 1) return 'not empty'
    for (const text of texts) yield { text, values: text.includes('($1') ? [hash, tokenVersion] : [] }
    return 'seeded'
  },
}
