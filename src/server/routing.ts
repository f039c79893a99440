import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { sendError } from './errors.ts'
import { allowedInstead } from './known-paths.ts'
import { nodeHttp } from './node-http.ts'

/** Refuses unknown paths and methods before the body is read. */
export function refuseUnrouted(server: FastifyInstance): void {
  server.addHook('onRequest', (request, reply, next) => {
    if (request.url === malformedUrl) return sendError(reply, 400, 'Malformed URL')
    if (request.url === unknownMethod) return sendError(reply, 400, 'Unknown method')
    const allow = allowedInstead(request)
    if (allow === undefined) return request.is404 ? sendError(reply, 404, 'Not found') : next()
    reply.header('allow', allow)
    if (request.method === 'OPTIONS') reply.code(204).send()
    else sendError(reply, 405, 'Method not allowed')
  })
}

/** Replaces a URL that the router cannot decode. No client can send it: a request target never starts with `(`. */
export const malformedUrl = '(malformed)'

/** Replaces the URL of a request whose method the parser accepts (those of RTSP) but the router does not know. */
const unknownMethod = '(unknown method)'

/**
 * A method that the parser accepts but that is no method of HTTP would skip all hooks. With a URL that a hook refuses,
 * the request runs through them.
 */
export function routableUrl(request: IncomingMessage): string {
  const { method = '', url = '' } = request
  if (knownMethods.has(method)) return url
  request.sentUrl = url
  request.method = 'GET'
  return unknownMethod
}

const knownMethods = new Set(nodeHttp.METHODS)
