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
      reply.header('access-control-allow-headers', allowedHeaders)
      reply.header('access-control-max-age', '7200')
    }
    reply.code(204).send()
  })
}

const allowedHeaders =
  'authorization, content-type, idempotency-key, if-match, if-none-match, x-request-id, traceparent'
const exposed =
  'ETag, Location, Link, Retry-After, RateLimit, RateLimit-Policy, Idempotent-Replayed, WWW-Authenticate, X-Request-Id'
