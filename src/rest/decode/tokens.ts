import { badInput, text } from '../../core/input.ts'
import type { Login } from '../../core/tokens/operations.ts'
import { userBounds } from '../../core/users/user.ts'
import { isObject } from '../../server/fields.ts'
import { fieldsOf } from './fields.ts'

/** Whether a body has no credentials at all, so that the request can only be a renewal of its token. */
export function hasNoCredentials(body: unknown): boolean {
  return body === undefined || (isObject(body) && body.email === undefined && body.password === undefined)
}

export function decodeLogin(body: unknown): Login {
  const { email, password } = fieldsOf(body)
  if (typeof email !== 'string' || typeof password !== 'string' || email === '' || password === '') {
    throw badInput('Email and password required')
  }
  return {
    email: text('email', email, userBounds.email),
    password: text('password', password, userBounds.password.most),
  }
}
