import type { Duet } from './connect.ts'
import { isDuetError } from './errors.ts'

/** A new password for a user who has forgotten it. Nobody needs to be signed in. */
export interface PasswordResets {
  /** Asks for a mail with a link. Succeeds for every e-mail, whether or not a user has it. */
  request(email: string): Promise<void>
  /**
   * Sets the password with the secret of the link, and ends all sessions of the user. Fails with `notFound` if the link
   * was used, has expired, or never existed.
   */
  set(secret: string, password: string): Promise<void>
}

export function passwordResets(duet: Duet): PasswordResets {
  const send: Duet['request'] = (...call) =>
    duet.request<never>(...call).catch(error => {
      if (!isDuetError(error, 'unauthenticated')) throw error
      return duet.request(...call) // the refusal has ended a session, which is not needed here
    })
  return {
    async request(email) {
      await send('POST', '/password-resets', { body: { email }, expect: 'json' })
    },
    async set(secret, password) {
      const path = `/password-resets/${encodeURIComponent(secret)}`
      await send('PUT', path, { body: { password }, expect: 'nothing' })
    },
  }
}
