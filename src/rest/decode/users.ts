import { badInput, isBlank } from '../../core/input.ts'
import { profileFields, profileRules, type UserInput, type UserListRequest, userRules } from '../../core/users/user.ts'
import { type Fields, isObject } from '../../server/fields.ts'
import { fieldsOf } from './fields.ts'
import { decodePage } from './page.ts'

/** Reads the page and the filter from the query string. */
export function decodeUserList(query: Fields): UserListRequest {
  const page = decodePage(query)
  return query.email === undefined ? page : { ...page, email: userRules.email(query.email) }
}

/** For POST and PUT: name and email are required. `null` in any other field counts as not sent. */
export function decodeUser(body: unknown): UserInput {
  const fields = isObject(body) ? body : {}
  if (!isFilled(fields.name) || !isFilled(fields.email)) throw badInput('Name and email required')
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
  return { name: userRules.name(fields.name), email: userRules.email(fields.email), ...optionsOf(given) }
}

/** For PATCH: only the fields that are sent change. `null` removes a value. */
export function decodeUserChanges(body: unknown): Partial<UserInput> {
  const fields = fieldsOf(body)
  return {
    ...(fields.name !== undefined && { name: userRules.name(fields.name) }),
    ...(fields.email !== undefined && { email: userRules.email(fields.email) }),
    ...optionsOf(fields),
  }
}

function isFilled(value: unknown): boolean {
  return typeof value === 'string' && !isBlank(value)
}

function optionsOf(fields: Fields): Omit<Partial<UserInput>, 'name' | 'email'> {
  const options: Record<string, unknown> = {}
  for (const name of profileFields) {
    const value = fields[name]
    if (value !== undefined) options[name] = value === null ? null : profileRules[name](value)
  }
  if (fields.password !== undefined) options.password = userRules.password(fields.password)
  return options
}
