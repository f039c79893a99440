import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { nodeHttp } from '../lib/node-http.ts'
import { sendError } from './errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The methods of every path, as it is registered, with names for its ids. */
    readonly methodsOfPaths: Map<string, Set<string>>
  }
  interface FastifyContextConfig {
    /** Set on routes that only refuse: the methods that their path has. */
    allow?: string
  }
}

declare module 'node:http' {
  interface IncomingMessage {
    /** The URL that the client sent, if routing has replaced `url`. */
    sentUrl?: string
  }
}

/** Refuses unknown paths and methods before the body is read. */
export function refuseUnrouted(server: FastifyInstance): void {
  const paths = new Map<string, Set<string>>()
  server.decorate('methodsOfPaths', paths)
  server.addHook('onRoute', ({ url, method }) => {
    paths.set(url, new Set([...(paths.get(url) ?? []), ...[method].flat()]))
  })
  server.addHook('onRequest', (request, reply, next) => {
    const { url, method, route } = request
    if (url === malformedUrl) return sendError(reply, 400, 'Malformed URL')
    if (url === unknownMethod) return sendError(reply, 400, 'Unknown method')
    const { allow } = route
    if (allow === undefined) return request.is404 ? sendError(reply, 404, 'Not found') : next()
    reply.header('allow', allow)
    if (method === 'OPTIONS') reply.code(204).send()
    else sendError(reply, 405, 'Method not allowed')
  })
}

/** Adds routes for the methods that a path does not have. Call this after all other routes are registered. */
export function refuseOtherMethods(server: FastifyInstance): void {
  for (const [url, methods] of [...server.methodsOfPaths]) {
    const others = server.supportedMethods.filter(method => !methods.has(method))
    const allow = [...methods, 'OPTIONS'].join(', ')
    server.route({ url, method: others, config: { allow }, handler: () => undefined })
  }
}

/** Replaces a URL that the router cannot decode. No client can send it: a request target never starts with `(`. */
export const malformedUrl = '(malformed)'

/** Replaces the URL of a request whose method the parser accepts (those of RTSP) but HTTP does not know. */
const unknownMethod = '(unknown method)'

/**
 * A method that the router does not know would skip all hooks. No path has `TRACE`, so such a request is refused like one
 * with that method. A method that is none of HTTP gets a URL that a hook refuses.
 */
export function routableUrl(request: IncomingMessage): string {
  const { method = '', url = '' } = request
  if (routedMethods.has(method)) return url
  request.method = 'TRACE'
  if (knownMethods.has(method)) return url
  request.sentUrl = url
  return unknownMethod
}

const knownMethods = new Set(nodeHttp.METHODS)
/** Those that Fastify knows. */
const routedMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])
