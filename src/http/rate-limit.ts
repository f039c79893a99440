import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { tooManyRequests } from '../core/errors.ts'
import type { Allowance, RateLimiter, RefusedClients } from '../core/ports.ts'
import type { RequestsAtOnce } from '../lib/requests-at-once.ts'
import { hasBody, ignoreBody } from './bodies.ts'
import { clientKey, type TrustedProxies } from './client-address.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    unlimited?: true
  }
  interface FastifyRequest {
    /** Whether the rate limit has counted it. */
    isCounted: boolean
  }
}

export interface RateLimit {
  readonly limiter: RateLimiter
  /** For what the rate limit exempts. It only protects this process, so it need not ask others for its counts. */
  readonly exempt: { readonly limit: number; take(client: string): Allowance }
  readonly atOnce: RequestsAtOnce
  readonly paths: readonly string[]
  readonly proxies: TrustedProxies
  readonly refused: RefusedClients
}

/** Refuses the connections of a client for some seconds, and closes those that it has open, except one. */
export type Refuse = (client: string, seconds: number, except?: Socket) => void

/** What exempt requests may be in a minute: more than pages, load balancers and monitoring need. */
export const exemptLimit = Object.freeze({ max: 1_000, windowMs: 60_000 })

/**
 * Counts the requests of each client on the given paths, valid or not, before they are processed; exempt ones on any
 * path count by themselves. A client that sends more than twice a limit is refused until its window ends.
 */
export function limitRequests(server: FastifyInstance, limit: RateLimit, refuse: Refuse): void {
  const { limiter, exempt, paths } = limit
  const isLimited = limitedPaths(paths)
  const policy = `"default";q=${limiter.limit};w=${Math.ceil(limiter.windowMs / 1000)}`
  const refusal = (reply: FastifyReply, client: string, most: number, allowance: Allowance) => {
    const { allowed, excess, resetSeconds } = allowance
    if (allowed) return undefined
    ignoreBody(reply.request.raw)
    if (excess > most) {
      reply.raw.shouldKeepAlive = false
      refuse(client, resetSeconds, reply.request.raw.socket)
    }
    return tooManyRequests(resetSeconds)
  }
  server.addHook('onRequest', (request, reply, next) => {
    const { raw, client } = request
    const exempted = isExempt(request)
    // The route counts too, because the same route can be reached by different notations of its URL.
    if (!exempted && !isLimited(raw.sentUrl ?? raw.url) && !isLimited(request.route.url)) return next()
    if (exempted) return next(refusal(reply, client, exempt.limit, exempt.take(client)))
    request.isCounted = true
    const decide = (allowance: Allowance) => {
      reply.header('ratelimit-policy', policy)
      reply.header('ratelimit', `"default";r=${allowance.remaining};t=${allowance.resetSeconds}`)
      next(refusal(reply, client, limiter.limit, allowance))
    }
    const allowance = limiter.take(client)
    if (allowance instanceof Promise) allowance.then(decide, next)
    else decide(allowance)
  })
}

/** Lets counted requests wait while others of their client are in progress. That begins when the whole body has arrived. */
export function limitAtOnce(server: FastifyInstance, { atOnce }: RateLimit): void {
  server.addHook('preHandler', (request, { raw: response }, next) => {
    const { raw, client, isCounted } = request
    // A socket stays open, so its operations wait instead. Other routes send their usual response to an upgrade.
    const isSocket = raw.socketUpgrade !== undefined && request.route.url === '/graphql'
    if (!isCounted || isSocket) return next()
    const begin = () => {
      if (response.destroyed) return atOnce.leave(client)
      let hasLeft = false
      const leave = () => {
        if (!hasLeft) setImmediate(() => atOnce.leave(client)) // others have a turn before its next request
        hasLeft = true
      }
      response.once('prefinish', leave) // the client may take long to read the answer
      response.once('close', leave)
      next()
    }
    const turn = atOnce.enter(client)
    if (turn === undefined) begin()
    else turn.then(begin)
  })
}

/**
 * Whether the rate limit does not count a request: pages ask before others, and monitoring must not be locked out. None of
 * these needs a body, which can take far more time than the request.
 */
export function isExempt(request: FastifyRequest): boolean {
  return (request.method === 'OPTIONS' || request.route.unlimited === true) && !hasBody(request)
}

/** Counts, like an exempt request, what has been parsed but never becomes a request. */
export function countUnserved(limit: RateLimit | undefined, refuse: Refuse): CountUnserved {
  if (limit === undefined) return () => {}
  const { exempt, proxies } = limit
  return request => {
    const address = proxies.clientOf(request)
    // A trusted proxy is not responsible for what its clients send.
    if (address === '' || proxies.includes(address)) return
    const client = clientKey(address)
    const { excess, resetSeconds } = exempt.take(client)
    if (excess > exempt.limit) refuse(client, resetSeconds)
  }
}

export type CountUnserved = (request: Pick<IncomingMessage, 'socket' | 'headers'>) => void

/** For GraphQL operations over a WebSocket: each counts like a request to `/graphql`, and waits like one. */
export function socketLimit(limit: RateLimit | undefined) {
  if (limit === undefined || !limitedPaths(limit.paths)('/graphql')) return { takeFor: () => () => undefined }
  const { limiter, proxies, atOnce } = limit
  const takeFor = (request: IncomingMessage) => {
    const client = proxies.keyOf(request)
    return () => limiter.take(client)
  }
  return { takeFor, atOnce }
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
