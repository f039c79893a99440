import type { Config } from '../config.ts'
import { idOf } from '../core/input.ts'
import { loginKeyOf } from '../core/users/user.ts'
import { createStore } from '../storage/store.ts'
import { systemRandomness } from '../wiring/base.ts'
import { complain } from './complain.ts'
import { isRole, roleComplaint } from './roles.ts'
import { refuseTemporary, requireFile, withDatabase } from './with-database.ts'

/** `duet users set-role` */
export async function setRole(config: Config, user: string, role: string): Promise<number> {
  if (!isRole(role)) return complain(roleComplaint)
  refuseTemporary(config.database)
  requireFile(config.database)
  const id = idOf(user)
  const target = id === undefined ? { loginKey: loginKeyOf(user) } : { id }
  const outcome = await withDatabase(config, engine => createStore(engine).setRole(target, role, systemRandomness.id()))
  if (outcome === 'absent') {
    return complain(
      id === undefined
        ? 'no user can log in with this e-mail; for a user without a password, give the id'
        : 'there is no user with this id',
    )
  }
  console.log(`Done. The user is now ${role} and has to log in again.`)
  return 0
}
