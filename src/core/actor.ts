/** The caller. Operations receive an actor and pass it to the access table; nothing else identifies a caller. */
export type Actor = { readonly kind: 'anonymous' } | IdentifiedUser

export interface IdentifiedUser {
  readonly kind: 'user'
  readonly id: number
  readonly role: Role
  /**
   * The token version of the user's row when the token was checked. Writes compare it again, because the token may have
   * been revoked since.
   */
  readonly tokenVersion: string
}

export const roles = ['member', 'admin'] as const
export type Role = (typeof roles)[number]

export const anonymous: Actor = Object.freeze({ kind: 'anonymous' })
