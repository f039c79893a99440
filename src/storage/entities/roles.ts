import type { IdentifiedUser, Role } from '../../core/actor.ts'
import type { RoleOutcome } from '../../core/store.ts'
import { sql } from '../sql.ts'
import type { Steps } from '../verb.ts'
import { revoked } from './actors.ts'

export const roleVerbs = {
  /** For an operator, who can always make another admin. */
  *setRole(user: { id: number } | { loginKey: string }, role: Role, tokenVersion: string): Steps<'set' | 'absent'> {
    const [id, loginKey] = 'id' in user ? [user.id, null] : [null, user.loginKey]
    const [row] = yield sql`update users set role = ${role}, token_mark = ${tokenVersion}
                            where id = ${id} or login_key = ${loginKey} returning id`
    if (row === undefined) return 'absent'
    yield revoked(Number(row[0]))
    return 'set'
  },

  /**
   * For an admin. Locks the rows of the admin, of the user and of one who stays an admin, in the order of their ids. So
   * if two admins demote each other or themselves at the same time, the second one sees what the first one has done.
   */
  *changeRole(actor: IdentifiedUser, id: number, role: Role, tokenVersion: string): Steps<RoleOutcome> {
    for (;;) {
      const [row] =
        actor.id === id
          ? yield sql`select id from users where role = 'admin' and id <> ${id} order by id limit 1`
          : [[actor.id]]
      const staying = Number(row?.[0] ?? 0)
      const rows = yield sql`select id, role, token_mark from users where id in (${actor.id}, ${id}, ${staying})
                             order by id for no key update`
      const find = (wanted: number) => rows.find(([found]) => found === wanted)
      const [current, admin] = [find(id), find(staying)]
      if (find(actor.id)?.[2] !== actor.tokenVersion) return 'token revoked'
      if (current === undefined) return 'absent'
      if (current[1] === role) return 'set'
      if (role === 'member' && staying === 0) return 'last admin'
      if (role === 'member' && admin?.[1] !== 'admin') continue // no longer one: look for another
      yield sql`update users set role = ${role}, token_mark = ${tokenVersion} where id = ${id}`
      yield revoked(id)
      return 'set'
    }
  },
}
