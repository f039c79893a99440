import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { AppError } from '../../core/errors.ts'
import { asset, once, serveAssets } from '../files.ts'
import { referenceText } from './api-reference.ts'
import { withAddress } from './examples.ts'
import { escapeHtml, frame, menu, type Page, pageHeaders } from './frame.ts'
import { renderMarkdown } from './markdown.ts'
import { searchIndex } from './search-index.ts'

const projectFolder = join(import.meta.dirname, '..', '..', '..')

/**
 * `/docs` lists the documentation, `/docs/…` shows each of its files. They are read at the first request, because most
 * processes never show them, and each page is rendered once.
 */
export function serveGuides(server: FastifyInstance): void {
  const contents = once(readContents)
  const files = once(async () => {
    const all = await contents()
    const pages = all.chapters.flatMap(({ guides }) =>
      guides.map(guide => [guide.address, async () => frame(await guidePage(guide, all, server))] as const),
    )
    const images = all.images.map(image => [image, () => readFile(join(projectFolder, image))] as const)
    return new Map([...pages, ...images].map(([address, load]) => [address, asset(load, extname(address))]))
  })
  const index = async () => {
    const body = indexPage((await contents()).chapters)
    return frame({ title: 'Documentation · Duet', root: '', place: 'docs', body })
  }
  serveAssets(server, { docs: index }, pageHeaders)
  serveAssets(server, {
    'docs/schema.graphql': () => readFile(join(projectFolder, 'api', 'schema.graphql')),
    'docs/search.json': async () => allSections(await contents(), server),
  })
  server.get('/docs/*', async (request, reply) => {
    const { '*': path } = request.params as { readonly '*': string }
    if (path === '') return reply.redirect('../docs', 308)
    const send = (await files()).get(`docs/${path}`)
    if (send === undefined) throw new AppError('not-found', 'Not found')
    return send(request, reply.headers(pageHeaders))
  })
}

/** What links in the files may name, besides other files of the documentation. */
const others: Readonly<Record<string, string>> = {
  'api/openapi.yaml': 'openapi.json',
  'api/schema.graphql': 'docs/schema.graphql',
  'docs/decisions': 'docs#decisions',
}

/** The text of a guide as HTML, with its headings. */
function guideText(guide: Guide, { chapters, images }: Contents, root: string) {
  const addresses = new Map(chapters.flatMap(({ guides }) => guides.map(({ file, address }) => [file, address])))
  const addressOf = (file: string) => {
    const address = addresses.get(file) ?? others[file] ?? images.find(image => image === file)
    return address === undefined ? undefined : root + address
  }
  return renderMarkdown(guide.text, guide.file, addressOf)
}

async function guidePage(guide: Guide, contents: Contents, server: FastifyInstance): Promise<Page> {
  const root = '../'.repeat(guide.address.split('/').length - 1)
  const { html, headings } = await guideText(guide, contents, root)
  const sections = headings.map(({ id, html }) => `<li><a href="#${id}">${html}</a></li>`)
  const links = contents.chapters.map(chapter => contentsOf(chapter, guide, sections, root))
  const body = `<div class="guide">
${menu('Documentation', links)}
<main id="content" class="text">
${withAddress(html, server)}</main>
</div>`
  return { title: `${guide.title} · Duet`, root, place: 'docs', body }
}

/** The sections of all guides and of the API reference, for the search in the pages. */
async function allSections(contents: Contents, server: FastifyInstance): Promise<string> {
  const pages = []
  for (const guide of contents.chapters.flatMap(({ guides }) => guides)) {
    await setImmediate() // the event loop goes on between two pages
    pages.push({ ...guide, html: (await guideText(guide, contents, '')).html })
  }
  pages.push({ address: 'docs/api', title: 'API reference', html: await referenceText() })
  return searchIndex(pages.map(page => ({ ...page, html: withAddress(page.html, server) })))
}

/** The links to the pages of a chapter. The present page also has links to its sections. */
function contentsOf({ name, guides }: Chapter, present: Guide, sections: readonly string[], root: string): string {
  // They are many, and only some of them matter to somebody who reads something else.
  if (name === 'Decisions' && !guides.includes(present)) return `<p><a href="${root}docs#decisions">Decisions</a></p>`
  const items = guides.map(guide => {
    const title = escapeHtml(guide.title)
    if (guide !== present) return `<li><a href="${root}${guide.address}">${title}</a></li>`
    const below = sections.length === 0 ? '' : `\n<ul>${sections.join('')}</ul>`
    return `<li><a href="#content" aria-current="page">${title}</a>${below}</li>`
  })
  if (name === 'Reference') items.push(`<li><a href="${root}docs/api">API reference</a></li>`)
  return `<p>${name}</p>\n<ul>${items.join('\n')}</ul>`
}

/** The page that lists all others. The last chapter, a long one, comes last. */
function indexPage(chapters: readonly Chapter[]): string {
  return `<main id="content" class="index">
<h1>Documentation</h1>
<p class="lead">Guides for those who use this service, run it, or work on it.</p>
<nav class="chapters" aria-label="Guides">
${chapters.slice(0, -1).map(chapterOf).join('\n')}
</nav>
<section aria-labelledby="api">
<h2 id="api">The API, operation by operation</h2>
<p><a href="docs/api">The API reference</a> shows every operation of the HTTP interface and lets you try it;
<a href="openapi.json">openapi.json</a> is the same as an OpenAPI document. <a href="graphql">GraphiQL</a> does this for
GraphQL, and <a href="docs/schema.graphql">schema.graphql</a> is its schema.</p>
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

/** What is in the documentation, in the order of reading. A folder stands for all of its files. */
const chapters: Readonly<Record<string, readonly string[]>> = {
  Start: ['README.md', 'docs/tutorial.md', 'client/README.md', 'docs/clients.md'],
  Reference: ['docs/http.md', 'docs/graphql.md', 'docs/limits.md', 'docs/rules.md'],
  'In production': ['docs/operations.md', 'docs/reliability.md', 'docs/benchmarks.md', 'SECURITY.md', 'CHANGELOG.md'],
  'Working on it': ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs/how-to'],
  Decisions: ['docs/decisions'],
}

/** Files whose heading says too little in a list. */
const ownTitles: Readonly<Record<string, string>> = { 'README.md': 'Overview', 'client/README.md': 'The typed client' }

type Contents = Awaited<ReturnType<typeof readContents>>
type Chapter = Contents['chapters'][number]
type Guide = Awaited<ReturnType<typeof readGuide>>

/** Reads all files of the documentation. The images are those in `docs/images`, which are served under the same path. */
export async function readContents() {
  const named = Object.entries(chapters).map(async ([name, entries]) => {
    const files = (await Promise.all(entries.map(entry => filesOf(entry)))).flat()
    return { name, guides: await Promise.all(files.map(readGuide)) }
  })
  const imagesOf = (ending: string) => filesOf('docs/images', ending).catch(() => []) // the folder may be absent
  const images = await Promise.all(['.png', '.svg'].map(imagesOf))
  return { chapters: await Promise.all(named), images: images.flat() }
}

async function filesOf(entry: string, ending = '.md'): Promise<readonly string[]> {
  if (entry.endsWith(ending)) return [entry]
  const names = (await readdir(join(projectFolder, entry))).filter(name => name.endsWith(ending))
  return names.sort().map(name => `${entry}/${name}`)
}

/** `file` is relative to the project's folder, and its address to the root of the service. */
async function readGuide(file: string) {
  const text = await readFile(join(projectFolder, file), 'utf8')
  const path = file.replace(/(?:\/README)?\.md$/, '')
  const address = path.startsWith('docs/') ? path : `docs/${path.toLowerCase()}`
  const [, heading = file] = /^# (.+)$/m.exec(text) ?? []
  const title = ownTitles[file] ?? heading.replaceAll('`', '')
  return { file, address, title, text }
}
