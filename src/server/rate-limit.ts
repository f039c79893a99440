import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { tooManyRequests } from '../core/errors.ts'
import type { Allowance, RateLimiter } from '../core/ports.ts'
import { clientKey, type TrustedProxies } from './client-address.ts'
import { routeOf } from './known-paths.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    unlimited?: true
  }
}

export interface RateLimit {
  readonly limiter: RateLimiter
  readonly paths: readonly string[]
  readonly proxies: TrustedProxies
}

/**
 * Counts the requests of each client on the given paths, valid or not, before they are processed. A client that sends
 * more than twice the limit loses its connection with every further refusal. So thousands of pipelined requests on that
 * connection are not even processed.
 */
export function limitRequests(server: FastifyInstance, { limiter, paths, proxies }: RateLimit): void {
  const isLimited = limitedPaths(paths)
  const policy = `"default";q=${limiter.limit};w=${Math.ceil(limiter.windowMs / 1000)}`
  const decide = (reply: FastifyReply, { allowed, excess, remaining, resetSeconds }: Allowance) => {
    reply.header('ratelimit-policy', policy)
    reply.header('ratelimit', `"default";r=${remaining};t=${resetSeconds}`)
    if (allowed) return undefined
    if (excess > limiter.limit) reply.raw.shouldKeepAlive = false
    return tooManyRequests(resetSeconds)
  }
  server.addHook('onRequest', (request, reply, next) => {
    const { raw, routeOptions } = request
    // The route counts too, because the same route can be reached by different notations of its URL.
    if (!isLimited(raw.sentUrl ?? raw.url) && !isLimited(routeOf(request))) return next()
    if (request.method === 'OPTIONS' || routeOptions.config.unlimited) return next()
    const allowance = limiter.take(clientKey(proxies.clientOf(raw)))
    if (!(allowance instanceof Promise)) return next(decide(reply, allowance))
    allowance.then(known => next(decide(reply, known)), next)
  })
}

/** For operations over a WebSocket: each counts like a request to `/graphql`. */
export function operationLimit(
  limit: RateLimit | undefined,
): (request: IncomingMessage) => () => ReturnType<RateLimiter['take']> | undefined {
  if (limit === undefined || !limitedPaths(limit.paths)('/graphql')) return () => () => undefined
  const { limiter, proxies } = limit
  return request => {
    const client = clientKey(proxies.clientOf(request))
    return () => limiter.take(client)
  }
}

declare module 'node:http' {
  interface IncomingMessage {
    /** The URL that the client sent, if routing has replaced `url`. */
    sentUrl?: string
  }
}

/**
 * `/api/` covers everything below it, `/graphql` covers itself and everything below it, `/` covers everything. Paths
 * are decoded in the same way as in the router.
 */
export function limitedPaths(paths: readonly string[]): (url: string | undefined) => boolean {
  if (paths.includes('/')) return () => true
  const covers = (path: string) => {
    for (const prefix of paths) {
      if (path.startsWith(prefix) && (prefix.endsWith('/') || isBoundary(path[prefix.length]))) return true
    }
    return false
  }
  return (url = '') => covers(url.startsWith('/') && !url.includes('%') ? url : plainPath(url))
}

function isBoundary(character: string | undefined): boolean {
  return character === undefined || character === '/' || character === '?' || character === '#'
}

// The request target may be a full URL (`GET http://host/api/users`), of which the router uses the path.
function plainPath(url: string): string {
  const [path = ''] = url.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)
  try {
    return decodeURIComponent(path)
  } catch {
    return path.replaceAll(/%[0-7][\da-f]/gi, code => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
  }
}
