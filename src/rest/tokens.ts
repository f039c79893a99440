import type { Tokens } from '../core/tokens/operations.ts'
import { clientKey, type TrustedProxies } from '../server/client-address.ts'
import type { RestServer } from './routes.ts'
import { logIn } from './token-operations.ts'

/** `POST /tokens` logs in. It ignores `Authorization`: who logs in need not be anybody yet. */
export function serveTokens({ server, prefix }: RestServer, tokens: Tokens, proxies: TrustedProxies): void {
  server.post(`${prefix}/tokens`, { config: { operation: logIn } }, async request => ({
    token: await tokens.logIn(clientKey(proxies.clientOf(request.raw)), request.body),
  }))
}
