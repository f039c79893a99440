import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { load } from 'js-yaml'
import { referencePage, referenceText } from './api-reference.ts'
import { renderGuides } from './guides.ts'
import { searchIndex } from './search-index.ts'

const root = join(import.meta.dirname, '..', '..')

/** What the service shows of the guides and of `api/openapi.yaml`: committed files, by their paths in the project. */
export function renderDocumentation(): ReadonlyMap<string, string> {
  const document = load(readFileSync(join(root, 'api', 'openapi.yaml'), 'utf8')) as object
  const reference = referenceText(document)
  const { pages, index } = renderGuides()
  const searched = [...pages, { address: 'docs/api', title: 'API reference', html: reference }]
  return new Map([
    ['api/openapi.json', openApiJson(document)],
    ['docs/dist/index.html', index],
    ['docs/dist/api.html', referencePage(reference)],
    ['docs/dist/search.json', searchIndex(searched)],
    ...pages.map(({ address, page }) => [address.replace('docs/', 'docs/dist/guides/').concat('.html'), page] as const),
  ])
}

/** Each operation and each component has a line, so that a change of one is no change of all. */
function openApiJson(document: object): string {
  return `${JSON.stringify(document, null, 1).replaceAll(/\n {4,}/g, '')}\n`
}

if (import.meta.main) {
  rmSync(join(root, 'docs', 'dist'), { recursive: true, force: true })
  for (const [path, text] of renderDocumentation()) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}
