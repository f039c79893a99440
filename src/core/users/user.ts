import type { Role } from '../actor.ts'
import { AppError } from '../errors.ts'

export interface User {
  readonly id: number
  readonly name: string
  readonly email: string
  readonly age: number | null
  readonly avatar: string | null
}

/** The fields of a user that a caller may set. `undefined`: not sent; `null`: to be removed. */
export interface UserInput {
  readonly name: string
  readonly email: string
  readonly age?: number | null
  readonly avatar?: string | null
  readonly password?: string
}

/** The properties of a user that are compared when a token is checked. */
export interface Standing {
  readonly role: Role
  /** The token version: a random value in the user's row. A token with another version is revoked. */
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

/** Login compares e-mail addresses without regard to case. */
export function loginKeyOf(email: string): string {
  return email.toLowerCase()
}
