import type { FastifyInstance, FastifyRequest } from 'fastify'
import { preferredType } from '../accept.ts'
import type { TrustedProxies } from '../client-address.ts'
import { version } from '../version.ts'
import { asPage, placesOf } from './frame.ts'
import { type Facts, homePage, type Links } from './home-page.ts'

export interface HomeOptions extends Facts {
  /** Whether browsers get a page. */
  readonly withPage: boolean
  /** Goes before every path in a link. */
  readonly linkPrefix: string
  readonly proxies: TrustedProxies
}

/** Where clients can go from here. A server that has no such route does not show the link. */
const paths = {
  console: '/console',
  graphql: '/graphql',
  docs: '/docs',
  openapi: '/openapi.json',
  health: '/health/ready',
  client: '/client.js',
} as const satisfies Links

/** `GET /` says what runs here: to browsers as a page, to other clients as JSON. `/api` and `/api/` are JSON only. */
export function serveHome(server: FastifyInstance, options: HomeOptions): void {
  const { withPage, linkPrefix, proxies } = options
  // The routes are complete when the first request arrives, but not yet here.
  const described = lazily(() => {
    const known = Object.entries(paths).filter(([, url]) => server.hasRoute({ method: 'GET', url }))
    const links: Links = Object.fromEntries(known.map(([name, path]) => [name, linkPrefix + path]))
    return { name: 'Duet', version, links }
  })
  const types = withPage ? (['application/json', 'text/html'] as const) : (['application/json'] as const)

  server.get('/', { config: { unlimited: true } }, (request, reply) => {
    reply.header('vary', 'Origin, Accept').header('cache-control', 'no-cache')
    if (preferredType(request.headers.accept, types) !== 'text/html') return reply.send(described())
    const base = /^https?:/.test(linkPrefix) ? linkPrefix : origin(request, proxies) + linkPrefix
    return asPage(reply).send(homePage({ ...options, base, links: described().links, places: placesOf(server) }))
  })
  for (const path of ['/api', '/api/']) {
    server.get(path, (_request, reply) => reply.header('cache-control', 'no-cache').send(described()))
  }
}

/** The address by which the client reached us. A `Host` that is not a plain name or address is not repeated. */
function origin({ headers, raw }: FastifyRequest, proxies: TrustedProxies): string {
  const isSecure = headers['x-forwarded-proto'] === 'https' && proxies.sent(raw)
  const { host = '' } = headers
  return `${isSecure ? 'https' : 'http'}://${plainHost.test(host) ? host : `127.0.0.1:${raw.socket.localPort}`}`
}

const plainHost = /^(?:[a-z\d](?:[a-z\d.-]{0,252}[a-z\d])?|\[[\da-f:.]{2,45}\])(?::\d{1,5})?$/i

function lazily<Value>(make: () => Value): () => Value {
  let made: Value | undefined
  return () => (made ??= make())
}
