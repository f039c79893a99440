import type { OpenApiDocument } from '../openapi.ts'
import type { Chapter } from './contents.ts'
import { escapeHtml } from './frame.ts'

/** The page that lists all others, and every operation of the HTTP interface. The last chapter, a long one, comes last. */
export function indexPage(chapters: readonly Chapter[], openApiDocument: OpenApiDocument): string {
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
${operationsIn(openApiDocument).map(operationOf).join('\n')}
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

interface Operation {
  readonly method: string
  readonly path: string
  readonly summary: string
  /** Where the API reference shows it. */
  readonly address: string
}

/** All operations, in the order of the document's tags. */
function operationsIn({ paths, tags }: OpenApiDocument): readonly Operation[] {
  const all = operationsOf(paths)
  return tags.flatMap(({ name }) => all.filter(({ address }) => address.startsWith(`docs/api#/${name}/`)))
}

function operationsOf(paths: OpenApiDocument['paths']): readonly Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, part]) => {
      if (method === 'servers') return []
      const { summary, operationId, tags } = part as Readonly<Record<'summary' | 'operationId', string>> & {
        readonly tags: readonly string[]
      }
      const address = `docs/api#/${tags[0]}/${operationId}`
      return [{ method: method.toUpperCase(), path, summary, address }]
    }),
  )
}

function operationOf({ method, path, summary, address }: Operation): string {
  return `<tr><td><a href="${address}"><code>${method} ${escapeHtml(path)}</code></a></td><td>${escapeHtml(summary)}</td></tr>`
}
