import type { FastifyInstance } from 'fastify'

/** The public halves of our keys, for whoever wants to check a token without asking us. */
export function servePublicKeys(server: FastifyInstance, keys: object): void {
  server.get('/.well-known/jwks.json', (_request, reply) => {
    reply.header('cache-control', 'public, max-age=300')
    return reply.send(keys)
  })
}
