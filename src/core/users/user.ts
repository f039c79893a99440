import type { Role } from '../actor.ts'
import { AppError } from '../errors.ts'
import { badInput, integer, nonBlankText, text, withoutControls } from '../input.ts'
import type { PageRequest } from '../page.ts'

export interface User extends Profile {
  readonly id: number
  readonly name: string
  readonly email: string
}

/** A part of the list of users, or of those with this e-mail, or whose name or e-mail begins with `q`. */
export interface UserListRequest extends PageRequest {
  readonly email?: string
  readonly q?: string
}

/** A page of users. Its parts are not empty. */
export interface UserList {
  readonly parts: readonly UserPart[]
  /** The id of the last user, if there are more. */
  readonly last: number | undefined
  readonly more: boolean
}

/** SQLite writes JSON: the objects with commas between them. Node need not decode these bytes. */
export type UserPart = readonly User[] | Uint8Array

/** The fields of a user that a caller may set. `undefined`: not sent; `null`: to be removed. */
export interface UserInput extends Partial<Profile> {
  readonly name: string
  readonly email: string
  readonly password?: string
}

/** The properties of a user that are compared when a token is checked. */
export interface TokenState {
  readonly role: Role
  /** The token version: a random value in the user's row. A token with another version is revoked. */
  readonly tokenVersion: string
}

/** Lengths in characters. */
export const userBounds = Object.freeze({
  name: 320,
  email: 320,
  age: 150,
  avatar: 2048,
  password: { least: 8, most: 128 },
  /** Of Unicode. */
  search: { least: 2, most: 100 },
})

/** Users of a list that are read at once, at most. */
export const usersTogether = 100

export const userRules = {
  name: (value: unknown) => withoutControls('name', nonBlankText('name', value, userBounds.name)),
  email(value: unknown) {
    const email = nonBlankText('email', value, userBounds.email)
    const isAddress = email.includes('@') && !/[\s\p{Cc}]/u.test(email)
    if (!isAddress) throw badInput('email must be an e-mail address')
    return email
  },
  password(value: unknown) {
    const { least, most } = userBounds.password
    const password = text('password', value, most)
    if (password.length < least) throw badInput(`password must be at least ${least} characters long`)
    return password
  },
}

/** The beginning of names and e-mails to search for. */
export function searchText(value: unknown): string {
  const { least, most } = userBounds.search
  const searched = text('q', value, Number.POSITIVE_INFINITY)
  const { length } = [...searched]
  if (length < least || length > most) throw badInput(`q must be ${least} to ${most} characters long`)
  return searched
}

/**
 * The optional fields of a user, and the rule for each. Decoding, storing and representing users use this table.
 * `core/entities.ts` describes the fields that GraphQL shows.
 */
export const profileRules = {
  age: (value: unknown) => integer('age', value, 0, userBounds.age),
  avatar: (value: unknown) => webAddress('avatar', value, userBounds.avatar),
}

export type Profile = {
  readonly [Name in keyof typeof profileRules]: ReturnType<(typeof profileRules)[Name]> | null
}

export const profileFields = Object.keys(profileRules) as readonly (keyof Profile)[]
export const userFields = ['id', 'name', 'email', ...profileFields] as const

export function profileOf(make: (name: keyof Profile) => string | number | null): Profile {
  const profile: Partial<Record<keyof Profile, unknown>> = {}
  for (const name of profileFields) profile[name] = make(name)
  return profile as Profile
}

/** In JSON it takes no more bytes than it may have characters: so the largest page of users is half as large. */
function webAddress(name: string, value: unknown, longest: number): string {
  const address = withoutControls(name, text(name, value, longest))
  if (!/^https?:\/\/\S+$/i.test(address) || !URL.canParse(address)) {
    throw badInput(`${name} must be an http or https address`)
  }
  if (Buffer.byteLength(JSON.stringify(address)) - 2 > longest) {
    throw badInput(`${name} must take at most ${longest} bytes in JSON`)
  }
  return address
}

export function absentUser(): AppError {
  return new AppError('not-found', 'User not found')
}

/** Logging in and finding users by e-mail disregard case. */
export function loginKeyOf(email: string): string {
  return email.toLowerCase()
}

/** Finding users by name disregards case, and which of the two small sigmas a word has. */
export function nameKeyOf(name: string): string {
  return name.toLowerCase().replaceAll('ς', 'σ')
}
