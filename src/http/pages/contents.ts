import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const projectFolder = fileURLToPath(new URL('../../../', import.meta.url))

/** A file of the documentation and where it is served. */
export interface Guide {
  /** Relative to the project's folder. */
  readonly file: string
  /** Relative to the root of the service. */
  readonly address: string
  /** Its heading, as plain text. */
  readonly title: string
  readonly text: string
}

export interface Contents {
  readonly chapters: readonly Chapter[]
  /** The files in `docs/images`, which are served under the same path. */
  readonly images: readonly string[]
}

export interface Chapter {
  readonly name: string
  readonly guides: readonly Guide[]
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

/** Reads all files of the documentation. */
export async function readContents(): Promise<Contents> {
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

async function readGuide(file: string): Promise<Guide> {
  const text = await readFile(join(projectFolder, file), 'utf8')
  const path = file.replace(/(?:\/README)?\.md$/, '')
  const address = path.startsWith('docs/') ? path : `docs/${path.toLowerCase()}`
  const [, heading = file] = /^# (.+)$/m.exec(text) ?? []
  const title = ownTitles[file] ?? heading.replaceAll('`', '')
  return { file, address, title, text }
}
