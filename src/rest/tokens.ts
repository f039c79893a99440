import type { Tokens } from '../core/tokens/operations.ts'
import { decodeLogin } from './decode/tokens.ts'
import { clientOf, type RestServer } from './routes.ts'
import { logIn } from './token-operations.ts'

/** `POST /tokens` logs in. It ignores `Authorization`, because a client that logs in needs no valid token yet. */
export function serveTokens({ server, prefix, proxies }: RestServer, tokens: Tokens): void {
  server.post(`${prefix}/tokens`, { config: { operation: logIn } }, async request => ({
    token: await tokens.logIn(clientOf(request, proxies), decodeLogin(request.body)),
  }))
}
