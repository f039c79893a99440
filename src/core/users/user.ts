import type { Role } from '../actor.ts'
import { AppError } from '../errors.ts'

export interface User {
  readonly id: number
  readonly name: string
  readonly email: string
  readonly age: number | null
  readonly avatar: string | null
}

/** What a caller may say about a user. `undefined`: nothing said; `null`: to be removed. */
export interface UserInput {
  readonly name: string
  readonly email: string
  readonly age?: number | null
  readonly avatar?: string | null
  readonly password?: string
}

/** What a valid token's user must still be. */
export interface Standing {
  readonly role: Role
  /** A random mark of the row: a token that carries another one is dead. */
  readonly mark: string
}

/** Lengths in characters. */
export const userBounds = Object.freeze({
  name: 320,
  email: 320,
  age: 150,
  avatar: 2048,
  password: { least: 8, most: 128 },
})

export function absentUser(): AppError {
  return new AppError('not-found', 'User not found')
}

/** E-mails of users who log in are compared without regard to case. */
export function loginKeyOf(email: string): string {
  return email.toLowerCase()
}
