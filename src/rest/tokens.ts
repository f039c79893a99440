import type { Tokens } from '../core/tokens/operations.ts'
import { bearerOf } from '../server/authentication.ts'
import { decodeLogin, hasNoCredentials } from './decode/tokens.ts'
import { tokenOperations } from './openapi/tokens.ts'
import { clientOf, type RestServer } from './routes.ts'

/**
 * `POST /tokens` logs in, or renews the token of the request if the body has no credentials. With credentials it ignores
 * `Authorization`, because a client that logs in needs no valid token yet. `DELETE /tokens` logs out everywhere.
 */
export function serveTokens({ server, authenticate, prefix, proxies }: RestServer, tokens: Tokens): void {
  const path = `${prefix}/tokens`
  server.post(path, { config: { operation: tokenOperations.create } }, async request => {
    const { authorization } = request.headers
    const token =
      authorization !== undefined && hasNoCredentials(request.body)
        ? await tokens.renew(bearerOf(authorization))
        : await tokens.logIn(clientOf(request, proxies), decodeLogin(request.body))
    return { token }
  })

  const deleting = { onRequest: authenticate, config: { operation: tokenOperations.delete } }
  server.delete(path, deleting, async (request, reply) => {
    await tokens.revokeAll(request.actor)
    return reply.code(204).send()
  })
}
