import type { Actor } from '../../core/actor.ts'
import { queued, type Statement, sql } from '../sql.ts'
import { Rollback, type Steps } from '../verb.ts'

/**
 * Takes the steps, unless the actor's token was revoked after it was checked: the user's token version has changed. With
 * `lock`, the user cannot be deleted before the transaction ends. PostgreSQL gets the check and the first step in one
 * round trip, so a refusal undoes that step. The step must not fail if the user does not exist any more.
 */
export function* unlessRevoked<Outcome, Refusal>(
  actor: Actor,
  steps: Steps<Outcome>,
  refusal: Refusal,
  lock = false,
): Steps<Outcome | Rollback<Refusal>> {
  if (actor.kind === 'anonymous') return yield* steps
  const { id, tokenVersion } = actor
  const check = lock
    ? sql`select token_mark from users where id = ${id} for key share`
    : sql`select token_mark from users where id = ${id}`
  let step = steps.next([])
  const [user] = yield { ...check, next: step.done ? undefined : step.value }
  if (user?.[0] !== tokenVersion) return new Rollback(refusal)
  while (!step.done) step = steps.next(yield step.value)
  return step.value
}

export function idOf(actor: Actor): number | null {
  return actor.kind === 'user' ? actor.id : null
}

/** Adds an event that tells every instance that the user's tokens are revoked. */
export function revoked(id: number): Statement {
  return queued(sql`insert into outbox (kind, user_id, created_at) values ('user-revoked', ${id}, now_plus(0))`)
}
