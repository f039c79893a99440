/** Who asks. Operations receive an actor and hand it to the access table; nothing else identifies a caller. */
export type Actor = { readonly kind: 'anonymous' } | { readonly kind: 'user'; readonly id: number; readonly role: Role }

export type Role = 'member' | 'admin'

export const anonymous: Actor = Object.freeze({ kind: 'anonymous' })
