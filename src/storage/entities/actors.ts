import type { Actor } from '../../core/actor.ts'
import { type Statement, sql } from '../sql.ts'
import type { Steps } from '../verb.ts'

/**
 * Whether the actor's token was revoked after it was checked: the user's token version has changed. With `lock`, the user
 * cannot be deleted before the transaction ends.
 */
export function* isRevoked(actor: Actor, lock = false): Steps<boolean> {
  if (actor.kind === 'anonymous') return false
  const [row] = lock
    ? yield sql`select token_mark from users where id = ${actor.id} for key share`
    : yield sql`select token_mark from users where id = ${actor.id}`
  return row?.[0] !== actor.tokenVersion
}

/** For `Traits.caller`. All callers without a token count as one. */
export function callerOf(actor: Actor): string {
  return actor.kind === 'user' ? String(actor.id) : 'anonymous'
}

/** Adds an event that tells every instance that the user's tokens are revoked. */
export function revoked(id: number): Statement {
  return sql`insert into outbox (kind, user_id, created_at) values ('user-revoked', ${id}, now_plus(0))`
}
