import { badInput, isObject, text } from '../core/input.ts'
import { userBounds } from '../core/users/user.ts'
import { bearerOf } from '../http/authentication.ts'
import { fieldsOf, type Rest } from './request.ts'

/**
 * `POST /tokens` logs in, or renews the token of the request if the body has no credentials. With credentials it ignores
 * `Authorization`, because a client that logs in needs no valid token yet. `DELETE /tokens` logs out everywhere.
 */
export function serveTokens({ server, authenticate, tokens }: Rest): void {
  server.post('/tokens', async request => {
    const { authorization } = request.headers
    const token =
      authorization !== undefined && hasNoCredentials(request.body)
        ? await tokens.renew(bearerOf(authorization))
        : await tokens.logIn(request.client, decodeLogin(request.body))
    return { token }
  })

  server.delete('/tokens', { onRequest: authenticate }, async (request, reply) => {
    await tokens.revokeAll(request.actor)
    return reply.code(204).send()
  })
}

/** Whether a body has no credentials at all, so that the request can only be a renewal of its token. */
function hasNoCredentials(body: unknown): boolean {
  return body === undefined || (isObject(body) && body.email === undefined && body.password === undefined)
}

function decodeLogin(body: unknown) {
  const { email, password } = fieldsOf(body)
  if (typeof email !== 'string' || typeof password !== 'string' || email === '' || password === '') {
    throw badInput('Email and password required')
  }
  return {
    email: text('email', email, userBounds.email),
    password: text('password', password, userBounds.password.most),
  }
}
