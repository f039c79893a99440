import { readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { AppError } from '../../core/errors.ts'
import { type Compressed, compress, once, sendCompressed, serveAssets } from '../assets.ts'
import { type OpenApiDocument, type OpenApiOperation, openApiDocument } from '../openapi.ts'
import { type Chapter, type Contents, type Guide, projectFolder, readContents } from './contents.ts'
import { asPage, escapeHtml, frame, type Page, placesOf } from './frame.ts'
import { type Rendered, renderMarkdown } from './markdown.ts'

/**
 * `/docs` lists the documentation, `/docs/…` shows each of its files. They are read at the first request, because most
 * processes never show them, and each page is rendered once.
 */
export function serveGuides(server: FastifyInstance): void {
  const contents = once(readContents)
  const made = new Map<string, () => Promise<Compressed>>()
  /** What `make` returned when it was first called for this address, compressed. */
  const kept = (address: string, make: () => Promise<string | Uint8Array>) => {
    const load = made.get(address) ?? once(async () => compress(await make()))
    made.set(address, load)
    return load()
  }
  const pageAt = (address: string, make: () => Promise<Page>) =>
    kept(address, async () => frame(await make(), placesOf(server)))

  server.get('/docs', async (request, reply) => {
    const make = async () => {
      const { chapters } = await contents()
      const body = indexPage(chapters, await openApiDocument())
      return { title: 'Duet: documentation', root: '', place: 'Docs', body }
    }
    return sendCompressed(await pageAt('docs', make), '.html', request, asPage(reply))
  })
  server.get('/docs/*', async (request, reply) => {
    const { '*': path } = request.params as { readonly '*': string }
    if (path === '') return reply.redirect('../docs', 308)
    const address = `docs/${path}`
    const all = await contents()
    if (all.images.includes(address)) {
      const image = await kept(address, () => readFile(join(projectFolder, address)))
      return sendCompressed(image, extname(address), request, reply.header('cache-control', 'no-cache'))
    }
    const guide = all.chapters.flatMap(({ guides }) => guides).find(each => each.address === address)
    if (guide === undefined) throw new AppError('not-found', 'Not found')
    return sendCompressed(await pageAt(address, () => guidePage(guide, all)), '.html', request, asPage(reply))
  })
  serveAssets(server, { 'docs/schema.graphql': () => readFile(join(projectFolder, 'api', 'schema.graphql')) })
}

/** What links in the files may name, besides other files of the documentation. */
const others: Readonly<Record<string, string>> = {
  'api/openapi.yaml': 'openapi.json',
  'api/schema.graphql': 'docs/schema.graphql',
  'docs/decisions': 'docs#decisions',
}

async function guidePage(guide: Guide, { chapters, images }: Contents): Promise<Page> {
  const root = '../'.repeat(guide.address.split('/').length - 1)
  const addresses = new Map(chapters.flatMap(({ guides }) => guides.map(({ file, address }) => [file, address])))
  const addressOf = (file: string) => {
    const address = addresses.get(file) ?? others[file] ?? images.find(image => image === file)
    return address === undefined ? undefined : root + address
  }
  const rendered = await renderMarkdown(guide.text, guide.file, addressOf)
  const body = `<div class="guide">
<main id="content" class="text">
${rendered.html}</main>
<nav class="contents" aria-label="Documentation">
${chapters.map(chapter => contentsOf(chapter, guide, rendered, root)).join('\n')}
</nav>
</div>`
  return { title: `${guide.title} · Duet`, root, place: 'Docs', body }
}

/** The links to the pages of a chapter. The present page also has links to its sections. */
function contentsOf({ name, guides }: Chapter, present: Guide, { headings }: Rendered, root: string): string {
  // They are many, and only some of them matter to somebody who reads something else.
  if (name === 'Decisions' && !guides.includes(present)) return `<p><a href="${root}docs#decisions">Decisions</a></p>`
  const sections = headings.map(({ id, text }) => `<li><a href="#${id}">${text}</a></li>`)
  const items = guides.map(guide => {
    const title = escapeHtml(guide.title)
    if (guide !== present) return `<li><a href="${root}${guide.address}">${title}</a></li>`
    const below = sections.length === 0 ? '' : `\n<ul>${sections.join('')}</ul>`
    return `<li><a href="#content" aria-current="page">${title}</a>${below}</li>`
  })
  return `<p>${name}</p>\n<ul>${items.join('\n')}</ul>`
}

/** The page that lists all others, and every operation of the HTTP interface. The last chapter, a long one, comes last. */
function indexPage(chapters: readonly Chapter[], openApiDocument: OpenApiDocument): string {
  return `<main id="content" class="index">
<h1>Documentation</h1>
<p class="lead">Guides for those who use this service, run it, or work on it.</p>
<nav class="chapters" aria-label="Guides">
${chapters.slice(0, -1).map(chapterOf).join('\n')}
</nav>
<section aria-labelledby="api">
<h2 id="api">The API, operation by operation</h2>
<p><a href="docs/api">The API reference</a> (Swagger UI) shows every operation of the HTTP interface and lets you try it;
<a href="openapi.json">openapi.json</a> is the same as an OpenAPI document. <a href="graphql">GraphiQL</a> does this for
GraphQL, and <a href="docs/schema.graphql">schema.graphql</a> is its schema.</p>
<div class="table" tabindex="0"><table>
<thead><tr><th scope="col">Operation</th><th scope="col">What it does</th></tr></thead>
<tbody>
${operationsIn(openApiDocument).join('\n')}
</tbody>
</table></div>
</section>
<nav class="decisions" aria-label="Decisions">
${chapters.slice(-1).map(chapterOf).join('')}
</nav>
</main>`
}

function chapterOf({ name, guides }: Chapter): string {
  const items = guides.map(({ address, title }) => `<li><a href="${address}">${escapeHtml(title)}</a></li>`)
  const id = name.toLowerCase().replaceAll(' ', '-')
  return `<section aria-labelledby="${id}"><h2 id="${id}">${name}</h2>
<ul>${items.join('\n')}</ul></section>`
}

/** The rows of all operations, in the order of the document's tags. */
function operationsIn({ paths, tags }: OpenApiDocument): readonly string[] {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, part]) => {
      if (method === 'servers') return []
      const {
        summary,
        operationId,
        tags: [tag],
      } = part as OpenApiOperation
      const name = `${method.toUpperCase()} ${escapeHtml(path)}`
      const row = `<tr><td><a href="docs/api#/${tag}/${operationId}"><code>${name}</code></a></td><td>${escapeHtml(summary)}</td></tr>`
      return [{ tag, row }]
    }),
  )
  return tags.flatMap(({ name }) => all.filter(({ tag }) => tag === name).map(({ row }) => row))
}
