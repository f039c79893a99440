import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { escapeHtml, frame } from '../../src/http/pages/frame.ts'
import { markAddresses } from './examples.ts'
import { menu } from './html.ts'
import { renderMarkdown } from './markdown.ts'

const projectFolder = join(import.meta.dirname, '..', '..')

/** A page for each guide, and one that lists them all. */
export function renderGuides() {
  const contents = readContents()
  const pages = contents.flatMap(({ guides }) => guides).map(guide => guidePage(guide, contents))
  const index = frame({ title: 'Documentation · Duet', root: '', place: 'docs', body: indexPage(contents) })
  return { pages, index }
}

function guidePage(guide: Guide, contents: readonly Chapter[]) {
  const { address, title, file, text } = guide
  const root = '../'.repeat(address.split('/').length - 1)
  const guides = new Map(contents.flatMap(({ guides }) => guides).map(({ file, address }) => [file, address]))
  const { html, headings } = renderMarkdown(text, file, named => {
    const target = guides.get(named) ?? others[named] ?? (named.startsWith('docs/images/') ? named : undefined)
    return target === undefined ? undefined : root + target
  })
  const sections = headings.map(({ id, html }) => `<li><a href="#${id}">${html}</a></li>`)
  const links = contents.map(chapter => contentsOf(chapter, guide, sections, root))
  const body = `<div class="guide">
${menu('Documentation', links)}
<main id="content" class="text">
${markAddresses(html)}</main>
</div>`
  return { address, title, html, page: frame({ title: `${title} · Duet`, root, place: 'docs', body }) }
}

/** What links in the files may name, besides other files of the documentation and its images. */
const others: Readonly<Record<string, string>> = {
  'api/openapi.yaml': 'openapi.json',
  'api/schema.graphql': 'docs/schema.graphql',
  'docs/decisions': 'docs#decisions',
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

type Chapter = ReturnType<typeof readContents>[number]
type Guide = ReturnType<typeof readGuide>

/** Reads all files of the documentation. */
function readContents() {
  return Object.entries(chapters).map(([name, entries]) => ({ name, guides: entries.flatMap(filesOf).map(readGuide) }))
}

function filesOf(entry: string): readonly string[] {
  if (entry.endsWith('.md')) return [entry]
  const names = readdirSync(join(projectFolder, entry)).filter(name => name.endsWith('.md'))
  return names.sort().map(name => `${entry}/${name}`)
}

/** `file` is relative to the project's folder, and its address to the root of the service. */
function readGuide(file: string) {
  const text = readFileSync(join(projectFolder, file), 'utf8')
  const path = file.replace(/(?:\/README)?\.md$/, '')
  const address = path.startsWith('docs/') ? path : `docs/${path.toLowerCase()}`
  const [, heading = file] = /^# (.+)$/m.exec(text) ?? []
  const title = ownTitles[file] ?? heading.replaceAll('`', '')
  return { file, address, title, text }
}
