import type { Tokens } from '../core/tokens/operations.ts'
import { decodeLogin } from './decode/tokens.ts'
import { clientOf, type RestServer } from './routes.ts'
import { logIn } from './token-operations.ts'

/** `POST /tokens` logs in. It ignores `Authorization`: who logs in need not be anybody yet. */
export function serveTokens({ server, prefix, proxies }: RestServer, tokens: Tokens): void {
  server.post(`${prefix}/tokens`, { config: { operation: logIn } }, async request => ({
    token: await tokens.logIn(clientOf(request, proxies), decodeLogin(request.body)),
  }))
}
