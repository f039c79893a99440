import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { AppError } from '../core/errors.ts'
import { allowedOrigins } from './cors.ts'
import { sendError } from './errors.ts'
import { isSameHost, knownHosts } from './hosts.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Set on routes that also serve requests whose `Host` is unknown. */
    anyHost?: true
  }
}

/**
 * Keeps pages of other sites out where requests need no token: the browser of a developer lets every page send requests
 * to this machine. A page whose own name leads to this machine (DNS rebinding) sends that name as `Host`. Any other page
 * cannot read our responses, but could change something by a request that needs no preflight, or open a socket. It
 * sends its `Origin` then, or at least that it is another site. Clients that are no browsers send neither.
 */
export function refuseForeignPages(
  server: FastifyInstance,
  corsOrigins: readonly string[],
  allowedHosts: readonly string[],
): void {
  const isAllowed = allowedOrigins(corsOrigins)
  const isKnown = knownHosts(allowedHosts)
  server.addHook('onRequest', ({ raw, routeOptions }, reply, next) => {
    if (!routeOptions.config.anyHost && !hostsOf(raw).every(isKnown)) {
      sendError(reply, 421, 'Unknown host')
      return
    }
    const isRefused = canAct(raw) && !isAllowed(raw.headers.origin ?? '') && isForeign(raw)
    next(isRefused ? new AppError('forbidden', 'Origin is not allowed') : undefined)
  })
}

/**
 * The `Host` header, and the host of a request target that is a full URL (`GET http://host/users`). In HTTP/1.0 there may
 * be neither, but browsers always send `Host`.
 */
function hostsOf({ headers: { host }, sentUrl, url = '' }: IncomingMessage): readonly string[] {
  const target = sentUrl ?? url
  const authority = target.startsWith('/') ? undefined : /^https?:\/\/([^/?#]*)/i.exec(target)?.[1]
  return [host, authority].filter(named => named !== undefined)
}

function canAct({ method = '', socketUpgrade }: IncomingMessage): boolean {
  return socketUpgrade !== undefined || !safeMethods.has(method)
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

function isForeign({ headers: { origin, host, 'sec-fetch-site': site } }: IncomingMessage): boolean {
  if (site === 'cross-site') return true
  return origin !== undefined && !isSameHost(origin, host)
}
