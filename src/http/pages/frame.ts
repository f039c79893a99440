import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { pageHeaders, serveAssets } from '../assets.ts'

export interface Page {
  readonly title: string
  /** The way from the page's address to the root, such as `../`: a gateway may publish the service below a prefix. */
  readonly root: string
  /** The name of the place that the page belongs to, if it is one of those in the header. */
  readonly place?: string
  /** The HTML between the header and the end of the page. */
  readonly body: string
}

export const htmlType = 'text/html; charset=utf-8'

/** A whole page: the head, the header with the links to all places, and the page's own part. */
export function frame({ title, root, place, body }: Page, places: readonly Place[]): string {
  const links = places.map(({ address, name }) => {
    const current = name === place ? ' aria-current="true"' : ''
    return `<a href="${root}${address}"${current}>${name}</a>`
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${root}favicon.ico" sizes="32x32">
<link rel="icon" href="${root}icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${root}pages.css">
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<a class="brand" href="${root === '' ? './' : root}"><img src="${root}icon.svg" width="28" height="28" alt=""> Duet</a>
<nav class="places" aria-label="Places">${links.join('')}</nav>
</header>
${body}
</body>
</html>
`
}

/** A place of this service that a person can visit. */
export interface Place {
  readonly name: string
  /** Relative to the root. */
  readonly address: string
}

const headerPlaces: readonly Place[] = [
  { name: 'Console', address: 'console' },
  { name: 'GraphiQL', address: 'graphql' },
  { name: 'Docs', address: 'docs' },
]

/** The places in the header of every page: those that this server has. */
export function placesOf(server: FastifyInstance): readonly Place[] {
  return headerPlaces.filter(({ address }) => server.hasRoute({ method: 'GET', url: `/${address}` }))
}

/** The pages have no scripts. Nothing is loaded from other hosts. */
const headers = pageHeaders("style-src 'self'", "img-src 'self'")

/** Sets the headers of a page. */
export function asPage(reply: FastifyReply): FastifyReply {
  return reply.headers(headers).type(htmlType)
}

/** Serves the style sheet and the icons of all pages. */
export function servePageAssets(server: FastifyInstance): void {
  const read = (file: string) => readFile(join(import.meta.dirname, file))
  serveAssets(server, {
    'pages.css': async () => Buffer.concat(await Promise.all(['theme.css', 'pages.css'].map(read))),
    'favicon.ico': () => read('favicon.ico'),
    'icon.svg': () => read('icon.svg'),
  })
}

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}
