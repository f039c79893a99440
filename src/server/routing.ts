import { type IncomingMessage, METHODS } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { refuse } from './errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Set on the routes that stand for every method a path does not have. */
    allow?: string
  }
}

/** Refuses unknown paths and methods by their head alone: no body is read for a request that cannot be served. */
export function refuseUnrouted(server: FastifyInstance): void {
  server.addHook('onRequest', (request, reply, next) => {
    if (request.url === malformedUrl) return refuse(reply, 400, 'Malformed URL')
    if (request.url === unknownMethod) return refuse(reply, 400, 'Unknown method')
    if (request.is404) return refuse(reply, 404, 'Not found')
    const { allow } = request.routeOptions.config
    if (allow === undefined) return next()
    reply.header('allow', allow)
    if (request.method === 'OPTIONS') reply.code(204).send()
    else refuse(reply, 405, 'Method not allowed')
  })
}

/** Stands for a URL that the router could not decode. No client can send it: a request's target never starts like this. */
export const malformedUrl = '(malformed)'

/** Stands for a method that the parser lets pass (those of RTSP) but the router does not know. */
const unknownMethod = '(unknown method)'

/** Such a request would skip all hooks: routed as one that is known to be refused, it does not. */
export function withoutUnknownMethods(request: IncomingMessage): string {
  if (knownMethods.has(request.method ?? '')) return request.url ?? ''
  request.sentUrl = request.url ?? ''
  request.method = 'GET'
  return unknownMethod
}

const knownMethods = new Set(METHODS)

/** Notes the methods of every path that is registered from now on; the returned function adds the answers to all others. */
export function rememberMethods(server: FastifyInstance): () => void {
  for (const method of METHODS) {
    if (!server.supportedMethods.includes(method)) server.addHttpMethod(method, { hasBody: true })
  }
  const methodsOf = new Map<string, Set<string>>()
  server.addHook('onRoute', ({ url, method }) => {
    const methods = methodsOf.get(url) ?? new Set<string>()
    methodsOf.set(url, methods)
    for (const each of [method].flat()) methods.add(each)
  })
  return () => {
    for (const [url, methods] of [...methodsOf]) {
      const others = server.supportedMethods.filter(method => !methods.has(method))
      const allow = [...methods, 'OPTIONS'].join(', ')
      server.route({ url, method: others, config: { allow }, schema: {}, handler: () => undefined })
    }
  }
}
