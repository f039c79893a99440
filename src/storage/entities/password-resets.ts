import { validMinutes } from '../../core/password-resets/mail.ts'
import type { DueReset } from '../../core/store.ts'
import { queued, sql } from '../sql.ts'
import type { Steps } from '../verb.ts'
import { revoked } from './actors.ts'

/** Triggers delete the resets of a user whose password or e-mail changes. */
export const resetVerbs = {
  /** The same work for every e-mail, also for one whose mail waits already. */
  *requestReset(emailKey: string): Steps<'waits' | 'full'> {
    const rows = yield sql`
      insert into password_resets (email_key, requested_at, try_at, expires_at)
      select ${emailKey}, now_plus(0), now_plus(0), now_plus(${validSeconds})
      where (select count(*) from (select 1 from password_resets where try_at is not null limit ${mostWaiting}) as waiting)
            < ${mostWaiting}
      on conflict (email_key) where try_at is not null
      do update set requested_at = excluded.requested_at, expires_at = excluded.expires_at returning 1`
    return rows.length === 0 ? 'full' : 'waits'
  },

  /** Takes one mail for each of the hashes, at most. Drops requests for e-mails that nobody has, or that got many mails. */
  *takeResets(hashes: readonly string[]): Steps<readonly DueReset[]> {
    const rows = yield sql`
      update password_resets set try_at = now_plus(${takenSeconds}), tries = tries + 1
      where id in (select id from password_resets where try_at <= now_plus(0) and expires_at > now_plus(0)
                   order by try_at, id limit ${hashes.length}) and try_at <= now_plus(0)
      returning id, email_key, tries`
    const due: DueReset[] = []
    for (const [at, [id = null, emailKey = null, tries]] of rows.entries()) {
      const [user] = yield sql`
        select email from users where login_key = ${emailKey} and ${mostSent} >
          (select count(*) from password_resets where email_key = ${emailKey} and try_at is null and expires_at > now_plus(0))`
      const hash = hashes[at] ?? null
      if (user === undefined) yield queued(sql`delete from password_resets where id = ${id}`)
      else {
        yield queued(sql`update password_resets set secret_hash = ${hash}, expires_at = now_plus(${validSeconds})
                         where id = ${id}`)
        due.push({ id: Number(id), email: String(user[0]), tries: Number(tries), hash: String(hash) })
      }
    }
    return due
  },

  /** The mail is sent. Its secret is valid until it expires. */
  *endReset(id: number): Steps<void> {
    yield queued(sql`update password_resets set try_at = null where id = ${id}`)
  },

  /** The mail was not sent, as far as is known. */
  *postponeReset(id: number, seconds: number): Steps<'waits' | 'over'> {
    const waits = yield sql`update password_resets set try_at = now_plus(${seconds})
                            where id = ${id} and requested_at > now_plus(${-triedSeconds}) returning 1`
    if (waits.length > 0) return 'waits'
    yield* resetVerbs.endReset(id)
    return 'over'
  },

  *completeReset(secretHash: string, passwordHash: string, tokenVersion: string): Steps<'done' | 'absent'> {
    const [reset] = yield resetReads.valid(secretHash)
    // All verbs lock the user first. Of two that use the same secret, the second finds it used then.
    const [user] = yield sql`select id from users where login_key = ${reset?.[0] ?? null} for update`
    const used = yield sql`delete from password_resets where secret_hash = ${secretHash} returning 1`
    if (user === undefined || used.length === 0) return 'absent'
    const id = Number(user[0])
    yield queued(sql`update users set password_hash = ${passwordHash}, token_mark = ${tokenVersion} where id = ${id}`)
    yield revoked(id)
    return 'done'
  },

  *purgeResets(): Steps<number> {
    const gone = yield sql`delete from password_resets where id in (
                             select id from password_resets where expires_at <= now_plus(0)
                             order by expires_at, id limit ${purgedTogether}
                           ) returning 1`
    return gone.length
  },
}

export const resetReads = {
  due: () => sql`select id from password_resets where try_at <= now_plus(0) and expires_at > now_plus(0) limit 1`,
  valid: (hash: string) =>
    sql`select email_key from password_resets where secret_hash = ${hash} and expires_at > now_plus(0)`,
}

const validSeconds = validMinutes * 60
/** Longer than sending a mail may take. */
const takenSeconds = 60
const triedSeconds = 600
const mostWaiting = 10_000
/** Mails to one user within the time that a link is valid. */
const mostSent = 5
const purgedTogether = 200
