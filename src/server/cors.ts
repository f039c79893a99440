import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isLoopbackHost } from './hosts.ts'

/** `*` allows any origin, `loopback` those of this machine. */
export function allowedOrigins(origins: readonly string[]): (origin: string) => boolean {
  const allowed = new Set(origins)
  if (allowed.has('*')) return () => true
  const withLoopback = allowed.has('loopback')
  return origin => allowed.has(origin) || (withLoopback && isLoopbackOrigin(origin))
}

function isLoopbackOrigin(origin: string): boolean {
  const [, host] = /^https?:\/\/(.+)$/.exec(origin) ?? []
  return host !== undefined && isLoopbackHost(host)
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
