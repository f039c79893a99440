import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { preferredType } from '../accept.ts'
import { serveAssets } from '../files.ts'

export interface Page {
  readonly title: string
  /** The way from the page's address to the root, such as `../`: a gateway may publish the service below a prefix. */
  readonly root: string
  /** The address of the place that the page belongs to, if it is one of those in the header. */
  readonly place?: string
  /** Its style sheets and scripts, if they are not those of most pages. */
  readonly head?: string
  /** The HTML between the header and the end of the page. */
  readonly body: string
}

/** The places that a person can visit, by their addresses relative to the root. */
const places: Readonly<Record<string, string>> = {
  console: 'Console',
  graphql: 'GraphiQL',
  docs: 'Docs',
  'docs/api': 'API',
}

/** A whole page: the head, the header with the links to all places and the account, and the page's own part. */
export function frame({ title, root, place, head, body }: Page): string {
  const links = Object.entries(places).map(([address, name]) => {
    const current = address === place ? ' aria-current="true"' : ''
    return `<a href="${root}${address}"${current}>${name}</a>`
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${root}favicon.ico" sizes="32x32">
<link rel="icon" href="${root}icon.svg" type="image/svg+xml">
${head ?? usualHead(root)}
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<a class="brand" href="${root === '' ? './' : root}"><img src="${root}icon.svg" width="28" height="28" alt=""> <span>Duet</span></a>
<nav class="places" aria-label="Places">${links.join('')}</nav>
<div id="account" data-root="${root}"></div>
</header>
${body}
</body>
</html>
`
}

/** The style sheet of most pages, and their scripts: the account, and what helps to read. */
export function usualHead(root: string): string {
  return `<link rel="stylesheet" href="${root}pages.css">
<script type="module" src="${root}header.js"></script>
<script type="module" src="${root}reading.js"></script>`
}

/** The headers of a page that may load what `sources` says, and nothing else. No other site may show it in a frame. */
export function headersFor(...sources: readonly string[]): Record<string, string> {
  const always = ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
  return {
    'content-security-policy': ["default-src 'none'", ...sources, ...always].join('; '),
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  }
}

/** Nothing is loaded from other hosts, and nothing inline is run. `'self'` includes sockets to this host. */
export const pageHeaders = headersFor(
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
)

/** The committed build of `console/`. `npm run build` writes it. */
export const built = join(import.meta.dirname, '../../../console/dist')

export function servePageAssets(server: FastifyInstance): void {
  const styles = [...sharedStyles, 'pages.css', `${built}/reading.css`]
  const read = (file: string) => readFile(resolve(import.meta.dirname, file))
  serveAssets(server, {
    'pages.css': async () => Buffer.concat(await Promise.all(styles.map(read))),
    'header.js': () => read(`${built}/header.js`),
    'reading.js': () => read(`${built}/reading.js`),
    'try.js': () => read(`${built}/try.js`),
  })
  // They hardly change, and each request for them would count for the rate limit.
  const icons = { 'favicon.ico': () => read('favicon.ico'), 'icon.svg': () => read('icon.svg') }
  serveAssets(server, icons, { 'cache-control': 'public, max-age=86400' })
}

/** Shows a page to a person who opens an unknown address. Programs get JSON, as everywhere. */
export function showMissing(server: FastifyInstance): void {
  server.addHook('onSend', ({ url, headers }, reply, payload, next) => {
    const isUnknown = reply.statusCode === 404 && payload === unknown && shallow.test(url)
    if (!isUnknown || preferredType(headers.accept, ['application/json', 'text/html']) !== 'text/html') return next()
    reply.headers({ ...pageHeaders, 'cache-control': 'no-store' }).type(htmlType)
    const root = '../'.repeat((url.split('?', 1)[0] ?? '').split('/').length - 2)
    next(null, frame({ title: 'Not found · Duet', root, body: missing(root === '' ? './' : root) }))
  })
}

export const htmlType = 'text/html; charset=utf-8'
const unknown = JSON.stringify({ error: 'Not found' })
/** The way back to the root is in every link of the page, so a long one would make it large. */
const shallow = /^(?:\/[^/?]*){1,9}(?:\?|$)/

const missing = (root: string) => `<main id="content" class="index">
<h1>There is nothing here</h1>
<p class="lead">No page of this service has this address. It may be misspelt, or the page has moved.</p>
<p><a href="${root}">Home</a> · <a href="${root}docs">Documentation</a> · <a href="${root}console">Console</a></p>
</main>`

/** The look of all pages, which the console and GraphiQL share. */
export const sharedStyles = ['theme.css', 'controls.css'].map(file => join(import.meta.dirname, file))

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}
