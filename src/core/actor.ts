/** Who asks. Operations receive an actor and hand it to the access table; nothing else identifies a caller. */
export type Actor = { readonly kind: 'anonymous' } | IdentifiedUser

export interface IdentifiedUser {
  readonly kind: 'user'
  readonly id: number
  readonly role: Role
  /** Of the user's row when the token was looked at; verbs look again, in case it died since. */
  readonly mark: string
}

export type Role = 'member' | 'admin'

export const anonymous: Actor = Object.freeze({ kind: 'anonymous' })
