import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Policy } from '../../core/access.ts'
import { preferredType } from '../accept.ts'
import type { TrustedProxies } from '../client-address.ts'
import { escapeHtml, frame, htmlType, pageHeaders } from './frame.ts'

export interface HomeOptions {
  readonly database: { readonly kind: 'sqlite' | 'postgres' }
  readonly accessPolicy: Policy
  /** Whether browsers get a page. */
  readonly explorers: boolean
  /** Goes before every path in a link. */
  readonly linkPrefix: string
  /** The login of the demo data, if it exists and works. */
  readonly demoLogin: { readonly email: string; readonly password: string } | undefined
  readonly proxies: TrustedProxies
}

const manifest = join(import.meta.dirname, '..', '..', '..', 'package.json')
export const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }

/** Where clients can go from here. A server that has no such route does not show the link. */
const paths = {
  console: '/console',
  graphql: '/graphql',
  docs: '/docs',
  openapi: '/openapi.json',
  health: '/health/ready',
  client: '/client.js',
}

/** `GET /` says what runs here: to browsers as a page, to other clients as JSON. `/api` and `/api/` are JSON only. */
export function serveHome(server: FastifyInstance, options: HomeOptions): void {
  const { explorers, linkPrefix, proxies } = options
  const described = () => {
    const known = Object.entries(paths).filter(([, url]) => server.hasRoute({ method: 'GET', url }))
    const links = Object.fromEntries(known.map(([name, path]) => [name, linkPrefix + path]))
    return { name: 'Duet', version, links }
  }
  const types = explorers ? (['application/json', 'text/html'] as const) : (['application/json'] as const)

  server.get('/', { config: { unlimited: true } }, (request, reply) => {
    reply.header('vary', 'Origin, Accept').header('cache-control', 'no-cache')
    if (preferredType(request.headers.accept, types) !== 'text/html') return reply.send(described())
    const base = /^https?:/.test(linkPrefix) ? linkPrefix : origin(request, proxies) + linkPrefix
    const page = frame({ title: 'Duet: a content and account service', root: '', body: homePage(options, base) })
    return reply.headers(pageHeaders).type(htmlType).send(page)
  })
  for (const path of ['/api', '/api/']) {
    server.get(path, (_request, reply) => reply.header('cache-control', 'no-cache').send(described()))
  }
}

/** The address by which the client reached us. A `Host` that is not a plain name or address is not repeated. */
function origin({ headers, raw }: FastifyRequest, proxies: TrustedProxies): string {
  const isSecure = headers['x-forwarded-proto'] === 'https' && proxies.includes(raw.socket.remoteAddress ?? '')
  const { host = '' } = headers
  return `${isSecure ? 'https' : 'http'}://${plainHost.test(host) ? host : `127.0.0.1:${raw.socket.localPort}`}`
}

const plainHost = /^(?:[a-z\d](?:[a-z\d.-]{0,252}[a-z\d])?|\[[\da-f:.]{2,45}\])(?::\d{1,5})?$/i

const engines = { sqlite: 'SQLite', postgres: 'PostgreSQL' }

/** One screen: what runs here, where to go, and two requests to try. */
function homePage({ database, demoLogin, accessPolicy }: HomeOptions, base: string): string {
  const card = (address: string, title: string, text: string) =>
    `<a class="card" href="${address}"><strong>${title}</strong><span>${text}</span></a>`
  const login =
    demoLogin === undefined
      ? ''
      : `<p class="note">There is demo data to play with. Sign in as <code>${escapeHtml(demoLogin.email)}</code> with
the password <code>${escapeHtml(demoLogin.password)}</code>.</p>`
  const command = (text: string) => escapeHtml(text).replace(base, '<span class="here">$&</span>')
  const path = accessPolicy === 'open' && demoLogin !== undefined ? '/users/1' : '/health/ready'
  const example = `curl -s ${base}/graphql -H 'Content-Type: application/json' \\
    -d '{"query":"query($n: Int) { posts(limit: $n) { title author { name } comments { text } } }","variables":{"n":1}}'`
  return `<main id="content" class="home">
<h1>One service, two interfaces</h1>
<p class="lead">GraphQL for users, posts and comments. HTTP and JSON for users, orders and payments. Both work on the same
data, with live updates.</p>
<p class="facts"><span class="fact good">Running</span><span class="fact">Duet ${version}</span><span
class="fact">${engines[database.kind]}</span>${demoLogin === undefined ? '' : '<span class="fact">Demo data</span>'}</p>
<nav class="cards" aria-label="Start here">
${card('console', 'Console', 'Sign in and look around: posts as they arrive, users, orders, payments.')}
${card('graphql', 'GraphiQL', 'Write GraphQL operations, with completion, and run them.')}
${card('docs/tutorial', 'Tutorial', 'A live page of your own in ten minutes.')}
${card('docs', 'Documentation', 'Guides, and every operation of both interfaces.')}
</nav>
${login}
<section class="try" aria-labelledby="try">
<h2 id="try">Try it in a terminal</h2>
<pre tabindex="0" aria-label="A request over HTTP"><code>${command(`curl -s ${base}${path}`)}</code></pre>
<pre tabindex="0" aria-label="A request in GraphQL"><code>${command(example)}</code></pre>
</section>
<ul class="more" aria-label="For programs"><li><a href="openapi.json">OpenAPI document</a></li><li><a
href="docs/schema.graphql">GraphQL schema</a></li><li><a href="client.js">Typed client</a></li><li><a
href="health/ready">Health</a></li></ul>
</main>`
}
