import type { Duet } from './connect.ts'
import type { CallOptions } from './http.ts'
import { type PageOptions, type Pages, pagesOf } from './pages.ts'
import { unchanged, type Versioned, versioned } from './versions.ts'

export type Role = 'admin' | 'member'

export interface User extends Versioned {
  readonly id: number
  readonly name: string
  readonly email: string
  readonly age?: number
  readonly avatar?: string
}

export interface UserInput {
  readonly name: string
  readonly email: string
  readonly age?: number | null
  readonly avatar?: string | null
  readonly password?: string | null
}

/** Absent fields stay unchanged; `null` removes a value. */
export interface UserChanges {
  readonly name?: string
  readonly email?: string
  readonly age?: number | null
  readonly avatar?: string | null
  readonly password?: string
}

/**
 * Writes take a user or its id. A user from `get` or `me` has an `ETag`: the write succeeds only if nobody has changed
 * the user since then. Otherwise it fails with `conflict` and `status` 412. A write with an id is unconditional.
 */
export interface Users {
  /** `q`: the beginning of names and e-mails. Not together with `email`. */
  list(options?: PageOptions & { readonly email?: string; readonly q?: string }): Pages<User>
  me(options?: { readonly signal?: AbortSignal }): Promise<User>
  get(id: number, options?: { readonly signal?: AbortSignal }): Promise<User>
  create(input: UserInput): Promise<User>
  /** Replaces the user, or creates it with this id. With `onlyNew` it never replaces a user. */
  replace(user: User | number, input: UserInput, options?: { readonly onlyNew?: boolean }): Promise<User>
  update(user: User | number, changes: UserChanges): Promise<User>
  delete(user: User | number): Promise<void>
  /** For admins. */
  role(id: number, options?: { readonly signal?: AbortSignal }): Promise<Role>
  /** For admins. Another role than before ends the tokens of the user. The last admin stays one: `conflict`. */
  setRole(id: number, role: Role): Promise<Role>
}

export function users(duet: Duet): Users {
  const get = async (id: number | 'me', signal: AbortSignal | undefined) => {
    const answer = await duet.request<User>('GET', `/users/${id}`, { signal, expect: 'json' })
    return versioned(answer.body, answer)
  }
  const write = async (method: string, user: User | number, body?: object, more: Record<string, string> = {}) => {
    const id = typeof user === 'number' ? user : user.id
    const headers = { ...unchanged(user), ...more }
    return (
      await duet.request<User>(method, `/users/${id}`, {
        body,
        headers,
        expect: method === 'DELETE' ? 'nothing' : 'json',
      })
    ).body
  }
  const role = async (method: string, id: number, options: Pick<CallOptions, 'body' | 'signal'>) =>
    (await duet.request<{ readonly role: Role }>(method, `/users/${id}/role`, { ...options, expect: 'json' })).body.role
  return {
    list: (options = {}) => pagesOf(duet, '/users', options, (user: User) => user),
    me: ({ signal } = {}) => get('me', signal),
    get: (id, { signal } = {}) => get(id, signal),
    create: async input => (await duet.request<User>('POST', '/users', { body: input, expect: 'json' })).body,
    replace: (user, input, { onlyNew = false } = {}) =>
      write('PUT', user, input, onlyNew ? { 'if-none-match': '*' } : {}),
    update: (user, changes) => write('PATCH', user, changes),
    delete: async user => {
      await write('DELETE', user)
    },
    role: (id, { signal } = {}) => role('GET', id, { signal }),
    setRole: (id, wanted) => role('PUT', id, { body: { role: wanted } }),
  }
}
