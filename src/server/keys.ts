import type { FastifyInstance } from 'fastify'

/** Serves our public keys, so that other services can verify a token without a request to us. */
export function servePublicKeys(server: FastifyInstance, keys: () => object): void {
  server.get('/.well-known/jwks.json', (_request, reply) => {
    reply.header('cache-control', 'public, max-age=300')
    return reply.send(keys())
  })
}
