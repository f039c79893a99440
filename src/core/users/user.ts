import type { Role } from '../actor.ts'
import { AppError } from '../errors.ts'
import { badInput, type Fields, fieldsOf, filled, integer, isBlank, isObject, text } from '../input.ts'

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

/** For POST and PUT: name and email are needed, and `null` for another field means that it is not there. */
export function completeUser(body: unknown): UserInput {
  const fields = isObject(body) ? body : {}
  if (!isFilled(fields.name) || !isFilled(fields.email)) throw badInput('Name and email required')
  const { age, avatar, password } = fields
  const given = { age: age ?? undefined, avatar: avatar ?? undefined, password: password ?? undefined }
  return { name: nameOf(fields), email: emailOf(fields), ...optionsOf(given) }
}

/** For PATCH: only what is sent is changed, and `null` removes. */
export function partialUser(body: unknown): Partial<UserInput> {
  const fields = fieldsOf(body)
  return {
    ...(fields.name !== undefined && { name: nameOf(fields) }),
    ...(fields.email !== undefined && { email: emailOf(fields) }),
    ...optionsOf(fields),
  }
}

export function absentUser(): AppError {
  return new AppError('not-found', 'User not found')
}

/** E-mails of users who log in are compared without regard to case. */
export function loginKeyOf(email: string): string {
  return email.toLowerCase()
}

function isFilled(value: unknown): boolean {
  return typeof value === 'string' && !isBlank(value)
}

function nameOf({ name }: Fields): string {
  return filled('name', name, 320)
}

function emailOf({ email }: Fields): string {
  const value = filled('email', email, 320)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (!value.includes('@') || /[\s\u0000-\u001f\u007f-\u009f]/.test(value))
    throw badInput('email must be an e-mail address')
  return value
}

function optionsOf({ age, avatar, password }: Fields): Pick<UserInput, 'age' | 'avatar' | 'password'> {
  return {
    ...(age !== undefined && { age: age === null ? null : integer('age', age, 0, 150) }),
    ...(avatar !== undefined && { avatar: avatar === null ? null : avatarOf(avatar) }),
    ...(password !== undefined && { password: passwordOf(password) }),
  }
}

function avatarOf(value: unknown): string {
  const avatar = text('avatar', value, 2048)
  if (!/^https?:\/\/\S+$/i.test(avatar) || !URL.canParse(avatar))
    throw badInput('avatar must be an http or https address')
  return avatar
}

function passwordOf(value: unknown): string {
  const password = text('password', value, 128)
  if (password.length < 8) throw badInput('password must be at least 8 characters long')
  return password
}
