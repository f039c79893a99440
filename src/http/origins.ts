import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { AppError } from '../core/errors.ts'
import { sendError } from './errors.ts'

/** `*` allows any origin, `loopback` those of this machine. */
export function allowedOrigins(origins: readonly string[]): (origin: string) => boolean {
  const allowed = new Set(origins)
  if (allowed.has('*')) return () => true
  const withLoopback = allowed.has('loopback')
  return origin => allowed.has(origin) || (withLoopback && loopback.test(/^https?:\/\/(.+)$/.exec(origin)?.[1] ?? ''))
}

/** Lets pages of the given origins read our responses, errors included. */
export function allowOrigins(server: FastifyInstance, origins: readonly string[]): void {
  const any = origins.includes('*')
  const isAllowed = allowedOrigins(origins)
  server.addHook('onRequest', (request, reply, next) => {
    const { origin } = request.headers
    reply.header('vary', 'Origin')
    if (origin === undefined) return next()
    const known = isAllowed(origin)
    if (known) {
      reply.header('access-control-allow-origin', any ? '*' : origin)
      reply.header('access-control-expose-headers', exposed)
    }
    if (known && isPreflight(request)) {
      reply.header('access-control-allow-methods', 'GET, HEAD, POST, PUT, PATCH, DELETE')
      reply.header('access-control-allow-headers', allowedHeaders(request.headers['access-control-request-headers']))
      reply.header('access-control-max-age', '7200')
    }
    next()
  })
}

/** Ends a preflight request: `allowOrigins` has set the headers that matter. */
export function answerPreflights(server: FastifyInstance): void {
  server.addHook('onRequest', (request, reply, next) => {
    if (isPreflight(request)) reply.code(204).send()
    else next()
  })
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined
}

/**
 * The headers that a page may send: those that it asks for, because clients add headers of their own and no cookie is
 * ever used. A list that is too long or not a list of names gets only those that the service itself reads.
 */
function allowedHeaders(asked: string | undefined): string {
  if (asked === undefined || asked.length > askedBounds.length) return ownHeaders
  const names = asked.split(',').map(name => name.trim().toLowerCase())
  return names.length <= askedBounds.names && names.every(name => headerName.test(name)) ? names.join(', ') : ownHeaders
}

const askedBounds = Object.freeze({ names: 50, length: 2000 })
const headerName = /^[a-z0-9!#$%&'*+.^_`|~-]+$/
const ownHeaders = 'authorization, content-type, idempotency-key, if-match, if-none-match, x-request-id, traceparent'
const exposed =
  'ETag, Location, Link, Retry-After, RateLimit, RateLimit-Policy, Idempotent-Replayed, WWW-Authenticate, X-Request-Id'

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
  server.addHook('onRequest', ({ raw, route }, reply, next) => {
    if (!route.probe && !(isKnown(raw.headers.host) && isKnown(authorityIn(raw)))) {
      sendError(reply, 421, 'Unknown host')
      return
    }
    const canAct = raw.socketUpgrade !== undefined || !safeMethods.has(raw.method ?? '')
    const isRefused = canAct && !isAllowed(raw.headers.origin ?? '') && isForeign(raw)
    next(isRefused ? new AppError('forbidden', 'Origin is not allowed') : undefined)
  })
}

/** The host of a request target that is a full URL (`GET http://host/users`). */
function authorityIn({ sentUrl, url = '' }: IncomingMessage): string | undefined {
  const target = sentUrl ?? url
  return target.startsWith('/') ? undefined : /^https?:\/\/([^/?#]*)/i.exec(target)?.[1]
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

function isForeign({ headers: { origin, host, 'sec-fetch-site': site } }: IncomingMessage): boolean {
  if (site === 'cross-site') return true
  return origin !== undefined && !isSameHost(origin, host)
}

/** A host, with or without a port, that is this machine for every browser. No DNS server can decide what it means. */
const loopback = /^(?:(?:[a-z\d_-]+\.)*localhost\.?|127(?:\.(?:\d\d?|1\d\d|2[0-4]\d|25[0-5])){3}|\[::1\])(?::\d*)?$/i

/**
 * The hosts that requests may name: loopback and the given ones. One without a port stands for all of its ports. In
 * HTTP/1.0 a request may name none, but browsers always do.
 */
function knownHosts(allowed: readonly string[]): (host: string | undefined) => boolean {
  const hosts = new Set(allowed)
  return host => {
    if (host === undefined || loopback.test(host)) return true
    const [, name = '', port = ''] = nameAndPort.exec(host.toLowerCase()) ?? []
    return hosts.has(name) || hosts.has(name + port)
  }
}

/** A name may end with a dot, which browsers send along. */
const nameAndPort = /^(\[[\da-f:.]+\]|[^\s:@/[\]]+?)\.?(:\d*)?$/

/** Whether a page of this origin was loaded from this host. */
export function isSameHost(origin: string, host: string | undefined): boolean {
  return origin === `http://${host}` || origin === `https://${host}`
}
