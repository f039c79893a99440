import { badInput, isBlank, nonBlankText, text } from '../../core/input.ts'
import { profileFields, profileRules, type UserInput, type UserListRequest, userBounds } from '../../core/users/user.ts'
import { type Fields, isObject } from '../../server/fields.ts'
import { fieldsOf } from './fields.ts'
import { decodePage } from './page.ts'

/** Reads the page and the filter from the query string. */
export function decodeUserList(query: Fields): UserListRequest {
  const page = decodePage(query)
  return query.email === undefined ? page : { ...page, email: emailOf(query) }
}

/** For POST and PUT: name and email are required. `null` in any other field counts as not sent. */
export function decodeUser(body: unknown): UserInput {
  const fields = isObject(body) ? body : {}
  if (!isFilled(fields.name) || !isFilled(fields.email)) throw badInput('Name and email required')
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
  return { name: nameOf(fields), email: emailOf(fields), ...optionsOf(given) }
}

/** For PATCH: only the fields that are sent change. `null` removes a value. */
export function decodeUserChanges(body: unknown): Partial<UserInput> {
  const fields = fieldsOf(body)
  return {
    ...(fields.name !== undefined && { name: nameOf(fields) }),
    ...(fields.email !== undefined && { email: emailOf(fields) }),
    ...optionsOf(fields),
  }
}

function isFilled(value: unknown): boolean {
  return typeof value === 'string' && !isBlank(value)
}

function nameOf({ name }: Fields): string {
  return nonBlankText('name', name, userBounds.name)
}

function emailOf({ email }: Fields): string {
  const value = nonBlankText('email', email, userBounds.email)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression must find them
  if (!value.includes('@') || /[\s\u0000-\u001f\u007f-\u009f]/.test(value))
    throw badInput('email must be an e-mail address')
  return value
}

function optionsOf(fields: Fields): Omit<Partial<UserInput>, 'name' | 'email'> {
  const options: Record<string, unknown> = {}
  for (const name of profileFields) {
    const value = fields[name]
    if (value !== undefined) options[name] = value === null ? null : profileRules[name](value)
  }
  if (fields.password !== undefined) options.password = passwordOf(fields.password)
  return options
}

function passwordOf(value: unknown): string {
  const { least, most } = userBounds.password
  const password = text('password', value, most)
  if (password.length < least) throw badInput(`password must be at least ${least} characters long`)
  return password
}
