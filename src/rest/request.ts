import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import { AppError } from '../core/errors.ts'
import { badInput, type Fields, idOf, isObject } from '../core/input.ts'
import type { Orders } from '../core/orders/operations.ts'
import { type PageRequest, pageBounds, sorts } from '../core/page.ts'
import type { PasswordResets } from '../core/password-resets/operations.ts'
import type { Payments } from '../core/payments/operations.ts'
import type { Tokens } from '../core/tokens/operations.ts'
import type { Users } from '../core/users/operations.ts'
import type { Links } from './links.ts'

export interface Rest {
  readonly server: FastifyInstance
  readonly authenticate: onRequestHookHandler
  readonly links: Links
  readonly users: Users
  readonly orders: Orders
  readonly payments: Payments
  readonly tokens: Tokens
  readonly passwordResets: PasswordResets
}

/** The id in the path, or `undefined` if no row can have such an id. */
export function idIn(request: FastifyRequest): number | undefined {
  const { id } = request.params as { id: string }
  if (id === '') throw new AppError('not-found', 'Not found') // `/users/` contains no id at all
  return idOf(id)
}

/** The fields of a body, which must be a JSON object. */
export function fieldsOf(body: unknown): Fields {
  if (isObject(body)) return body
  throw badInput('Request body must be a JSON object')
}

/** The page that the query string asks for. The default is the first thousand items. */
export function decodePage({ limit, offset, after, sort }: Fields): PageRequest {
  const page = {
    limit: wholeNumber('limit', limit, 1, pageBounds.limit, pageBounds.limit),
    offset: wholeNumber('offset', offset, 0, pageBounds.offset, 0),
    ...(sort !== undefined && { sort: oneOf('sort', sort, sorts) }),
  }
  if (after === undefined) return page
  if (offset !== undefined) throw badInput('after and offset cannot be used together')
  const id = typeof after === 'string' ? idOf(after) : undefined
  if (id === undefined) throw badInput(`after must be an integer from 1 to ${Number.MAX_SAFE_INTEGER}`)
  return { ...page, after: id }
}

export function oneOf<Choice>(name: string, value: unknown, choices: readonly Choice[]): Choice {
  const choice = choices.find(each => each === value)
  if (choice === undefined) throw badInput(`${name} must be one of ${choices.join(', ')}`)
  return choice
}

function wholeNumber(name: string, value: unknown, least: number, most: number, fallback: number): number {
  if (value === undefined) return fallback
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  if (number >= least && number <= most) return number
  throw badInput(`${name} must be an integer from ${least} to ${most}`)
}
