import { version } from '../version.ts'
import { escapeHtml, frame, type Place } from './frame.ts'

/** What the page says about the service. */
export interface Facts {
  /** The database engine that runs here. */
  readonly engine: string
  /** The login of the demo data, if it exists and works. */
  readonly demoLogin: { readonly email: string; readonly password: string } | undefined
  /** Whether callers without a token may read users. */
  readonly isOpen: boolean
}

/** Where clients can go from here. */
export type Links = Readonly<Partial<Record<'console' | 'graphql' | 'docs' | 'openapi' | 'health' | 'client', string>>>

export interface HomePage extends Facts {
  /** The address of this service, as the client knows it. */
  readonly base: string
  readonly links: Links
  readonly places: readonly Place[]
}

const engines: Readonly<Record<string, string>> = { sqlite: 'SQLite', postgres: 'PostgreSQL' }

/** One screen: what runs here, where to go, and two requests to try. */
export function homePage({ engine, demoLogin, isOpen, base, links, places }: HomePage): string {
  const card = (name: keyof Links, address: string, title: string, text: string) =>
    links[name] === undefined
      ? ''
      : `<a class="card" href="${address}"><strong>${title}</strong><span>${text}</span></a>\n`
  const more = (name: keyof Links, address: string, title: string) =>
    links[name] === undefined ? '' : `<li><a href="${address}">${title}</a></li>`
  const login =
    demoLogin === undefined
      ? ''
      : `<p class="note">There is demo data to play with. Sign in as <code>${escapeHtml(demoLogin.email)}</code> with
the password <code>${escapeHtml(demoLogin.password)}</code>.</p>`
  const path = isOpen && demoLogin !== undefined ? '/users/1' : '/health/ready'
  const body = `<main id="content" class="home">
<h1>One service, two interfaces</h1>
<p class="lead">GraphQL for users, posts and comments. HTTP and JSON for users, orders and payments. Both work on the same
data, with live updates.</p>
<p class="facts"><span class="fact good">Running</span><span class="fact">Duet ${version}</span><span
class="fact">${engines[engine] ?? escapeHtml(engine)}</span>${demoLogin === undefined ? '' : '<span class="fact">Demo data</span>'}</p>
<nav class="cards" aria-label="Start here">
${card('console', 'console', 'Console', 'Sign in and look around: posts as they arrive, users, orders, payments.')}${card(
  'graphql',
  'graphql',
  'GraphiQL',
  'Write GraphQL operations, with completion, and run them.',
)}${card('docs', 'docs/tutorial', 'Tutorial', 'A live page of your own in ten minutes.')}${card(
  'docs',
  'docs',
  'Documentation',
  'Guides, and every operation of both interfaces.',
)}</nav>
${login}
<section class="try" aria-labelledby="try">
<h2 id="try">Try it in a terminal</h2>
<pre tabindex="0" aria-label="A request over HTTP"><code>${escapeHtml(`curl -s ${base}${path}`)}</code></pre>
<pre tabindex="0" aria-label="A request in GraphQL"><code>${escapeHtml(graphqlExample(base))}</code></pre>
</section>
<ul class="more" aria-label="For programs">${more('openapi', 'openapi.json', 'OpenAPI document')}${more(
    'docs',
    'docs/schema.graphql',
    'GraphQL schema',
  )}${more('client', 'client.js', 'Typed client')}${more('health', 'health/ready', 'Health')}</ul>
</main>`
  return frame({ title: 'Duet: a content and account service', root: '', body }, places)
}

/** The first example of the README. */
function graphqlExample(base: string): string {
  return `curl -s ${base}/graphql -H 'Content-Type: application/json' \\
    -d '{"query":"query($n: Int) { posts(limit: $n) { title author { name } comments { text } } }","variables":{"n":1}}'`
}
