import type { FastifyInstance } from 'fastify'

export function allowedOrigins(origins: readonly string[]): (origin: string) => boolean {
  const allowed = new Set(origins)
  return origin => allowed.has('*') || allowed.has(origin)
}

/** Lets pages of the given origins read our responses, errors included, and answers preflight requests. */
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
    const isPreflight = request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined
    if (!isPreflight) return next()
    if (known) {
      reply.header('access-control-allow-methods', 'GET, HEAD, POST, PUT, PATCH, DELETE')
      reply.header('access-control-allow-headers', allowedHeaders(request.headers['access-control-request-headers']))
      reply.header('access-control-max-age', '7200')
    }
    reply.code(204).send()
  })
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
