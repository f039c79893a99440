import { type IncomingMessage, METHODS } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { sendError } from './errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Set on the routes that handle every method which a path does not support. */
    allow?: string
  }
}

/** Refuses unknown paths and methods before the body is read. */
export function refuseUnrouted(server: FastifyInstance): void {
  server.addHook('onRequest', (request, reply, next) => {
    if (request.url === malformedUrl) return sendError(reply, 400, 'Malformed URL')
    if (request.url === unknownMethod) return sendError(reply, 400, 'Unknown method')
    if (request.is404) return sendError(reply, 404, 'Not found')
    const { allow } = request.routeOptions.config
    if (allow === undefined) return next()
    reply.header('allow', allow)
    if (request.method === 'OPTIONS') reply.code(204).send()
    else sendError(reply, 405, 'Method not allowed')
  })
}

/** Replaces a URL that the router cannot decode. No client can send it: a request target never starts with `(`. */
export const malformedUrl = '(malformed)'

/** Replaces the URL of a request whose method the parser accepts (those of RTSP) but the router does not know. */
const unknownMethod = '(unknown method)'

/** Stands for all methods that no route has: a route of its own for each of them would slow down the start. */
const otherMethod = 'TRACE'

/**
 * Prepares a request for the router, which knows only the usual methods. A request with another method is routed with
 * `otherMethod`, and a hook restores the method (`restoreMethod`). A method that is no method of HTTP would skip all
 * hooks; with a URL that a hook refuses, the request runs through them.
 */
export function routableUrl(request: IncomingMessage): string {
  const { method = '', url = '' } = request
  if (routedMethods.has(method)) return url
  if (knownMethods.has(method)) {
    request.sentMethod = method
    request.method = otherMethod
    return url
  }
  request.sentUrl = url
  request.method = 'GET'
  return unknownMethod
}

export function restoreMethod(request: IncomingMessage): void {
  if (request.sentMethod !== undefined) request.method = request.sentMethod
}

declare module 'node:http' {
  interface IncomingMessage {
    /** The method that the client sent, if routing has replaced `method`. */
    sentMethod?: string
  }
}

const routedMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', otherMethod])
const knownMethods = new Set(METHODS)

/**
 * Collects the methods of every path that is registered from now on. The returned function adds the routes that refuse
 * all other methods.
 */
export function rememberMethods(server: FastifyInstance): () => void {
  const methodsOf = new Map<string, Set<string>>()
  server.addHook('onRoute', ({ url, method }) => {
    const methods = methodsOf.get(url) ?? new Set<string>()
    methodsOf.set(url, methods)
    for (const each of [method].flat()) methods.add(each)
  })
  return () => {
    for (const [url, methods] of [...methodsOf]) {
      const others = [...routedMethods].filter(method => !methods.has(method))
      const allow = [...methods, 'OPTIONS'].join(', ')
      server.route({ url, method: others, config: { allow }, schema: {}, handler: () => undefined })
    }
  }
}
