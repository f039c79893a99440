import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import findMyWay, { type HTTPVersion, type Instance } from 'find-my-way'

declare module 'fastify' {
  interface FastifyInstance {
    knownPaths: KnownPaths
  }
  interface FastifyRequest {
    /** The path of this request, if it is known but does not support the method. */
    refusedPath: KnownPath | undefined
  }
  interface FastifyContextConfig {
    /** Set on routes that only refuse (`refuseHiddenMethods`). */
    allow?: string
  }
}

interface KnownPath {
  /** As it is registered, with names for its ids. */
  readonly url: string
  readonly methods: Set<string>
}

/** Collects the methods of every path that is registered from now on. */
export function rememberPaths(server: FastifyInstance): void {
  const paths = new KnownPaths()
  server.decorate('knownPaths', paths)
  server.decorateRequest('refusedPath')
  server.addHook('onRoute', route => paths.add(route))
}

/** The path of a request as it is registered, also if the path does not support the method. */
export function routeOf({ refusedPath, routeOptions }: FastifyRequest): string | undefined {
  return refusedPath?.url ?? routeOptions.url
}

/** The value of `Allow` if the request must be refused because of its method. */
export function allowedInstead({ refusedPath, routeOptions }: FastifyRequest): string | undefined {
  return refusedPath === undefined ? routeOptions.config.allow : allow(refusedPath)
}

/**
 * Refuses the methods of a path that the router would find at another path: `PUT /users/me` as `PUT /users/:id`. Call
 * this after all routes are registered. All other methods are refused without a route, because routes slow down the start.
 */
export function refuseHiddenMethods(server: FastifyInstance): void {
  for (const path of server.knownPaths.all()) {
    const { url, methods } = path
    const hidden = server.supportedMethods.filter(method => !methods.has(method) && server.findRoute({ url, method }))
    if (hidden.length === 0) continue
    server.route({ url, method: hidden, config: { allow: allow(path) }, handler: () => undefined })
  }
}

function allow({ methods }: KnownPath): string {
  return [...methods, 'OPTIONS'].join(', ')
}

class KnownPaths {
  readonly #paths = new Map<string, KnownPath>()
  #router: Instance<HTTPVersion.V1> | undefined

  add({ url, method, config }: RouteOptions): void {
    if (config?.allow !== undefined) return
    const path = this.#paths.get(url) ?? { url, methods: new Set() }
    this.#paths.set(url, path)
    for (const each of [method].flat()) path.methods.add(each)
  }

  all(): readonly KnownPath[] {
    return [...this.#paths.values()]
  }

  /** Finds the path of a URL by the rules of the server's own router. */
  find(url: string): KnownPath | undefined {
    this.#router ??= this.#build()
    return this.#router.find('GET', url)?.store
  }

  #build(): Instance<HTTPVersion.V1> {
    const router = findMyWay({ maxParamLength })
    for (const path of this.#paths.values()) router.on('GET', path.url, () => {}, path)
    return router
  }
}

/** An id of any length is simply absent; the limit on the header size bounds it already. */
export const maxParamLength = 16_384
