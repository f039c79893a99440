import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { invalidToken } from '../core/access.ts'
import { type Actor, anonymous } from '../core/actor.ts'
import type { AppError } from '../core/errors.ts'
import type { Tokens } from '../core/tokens/operations.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller, on routes that authenticate. */
    actor: Actor
  }
}

/**
 * Reads the bearer token before any other part of a request. Without the header the caller is anonymous. An invalid
 * token is refused on every route that uses this hook, public routes too, because its sender expects to be logged in.
 */
export function authentication(server: FastifyInstance, tokens: Tokens): onRequestHookHandler {
  server.decorateRequest('actor')
  const identify = async (authorization: string) => (await tokens.authenticate(bearerOf(authorization))).actor
  return (request, _reply, next) => {
    const { authorization } = request.headers
    if (authorization === undefined) {
      request.actor = anonymous
      return next()
    }
    identify(authorization).then(actor => {
      request.actor = actor
      next()
    }, next)
  }
}

export function bearerOf(authorization: string): string {
  const [scheme] = /^Bearer {1,8}/i.exec(authorization) ?? [] // few blanks: a token is kept as a part of its header
  if (scheme === undefined) throw invalidToken()
  return authorization.slice(scheme.length)
}

/** RFC 6750: the challenge names an error only if the request has a bearer token, not if it uses another scheme. */
export function challenge(request: FastifyRequest, reply: FastifyReply, { message }: AppError): void {
  const presented = /^Bearer(?:[ ,]|$)/i.test(request.headers.authorization ?? '')
  reply.header(
    'www-authenticate',
    presented ? `Bearer error="invalid_token", error_description="${message}"` : 'Bearer',
  )
}

/** Serves our public keys, so that other services can verify a token without a request to us. */
export function servePublicKeys(server: FastifyInstance, keys: () => object): void {
  server.get('/.well-known/jwks.json', (_request, reply) => {
    reply.header('cache-control', 'public, max-age=300')
    return reply.send(keys())
  })
}
