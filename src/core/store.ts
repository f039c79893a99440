import type { Actor, Role } from './actor.ts'
import type { PageRequest } from './page.ts'
import type { Standing, User } from './users/user.ts'

/** Everything the core keeps. Each method is atomic, and durable once it has answered. */
export interface Store {
  /** Answers when both reading and writing are possible; rejects with `unavailable` otherwise. */
  ping(): Promise<void>
  readonly users: UserStore
}

export interface UserStore {
  /** By id; one more than the limit, if there is one. */
  list(page: PageRequest): Promise<readonly User[]>
  read(id: number): Promise<User | undefined>
  standing(id: number): Promise<Standing | undefined>
  credentials(loginKey: string): Promise<Credentials | undefined>
  create(values: UserValues): Promise<User | 'email taken'>
  /** Creates the user under this id where there is none. */
  replace(id: number, values: UserValues, rights: WriteRights): Promise<Replaced | WriteRefusal>
  change(id: number, values: Partial<UserValues>, rights: WriteRights): Promise<User | 'absent' | WriteRefusal>
  delete(id: number, actor: Actor): Promise<'gone' | 'token revoked'>
  setRole(user: { id: number } | { loginKey: string }, role: Role, mark: string): Promise<'set' | 'absent'>
}

export interface Credentials extends Standing {
  readonly id: number
  readonly passwordHash: string
}

export interface UserValues {
  readonly name: string
  readonly email: string
  readonly age: number | null
  readonly avatar: string | null
  /** A new password; without it an existing one stays. */
  readonly password: { readonly hash: string } | null
  /** For a new row, or a new password. */
  readonly mark: string
}

/** Whoever writes must still be who they were when they were let in: passwords take their time to be hashed. */
export interface WriteRights {
  readonly actor: Actor
  readonly mayChangePassword: boolean
}

export interface Replaced {
  readonly user: User
  readonly created: boolean
}

export type WriteRefusal = 'email taken' | 'password protected' | 'token revoked'
