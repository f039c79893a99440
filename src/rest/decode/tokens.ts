import { badInput, text } from '../../core/input.ts'
import type { Login } from '../../core/tokens/operations.ts'
import { userBounds } from '../../core/users/user.ts'
import { fieldsOf } from './fields.ts'

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
