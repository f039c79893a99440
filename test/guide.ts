import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { temporaryFolder } from './support/folder.ts'

const root = join(import.meta.dirname, '..')

/** A copy of the project in which the guides of `docs/how-to` can be applied. */
export function copyOfProject(): Disposable & { readonly path: string } {
  const copy = temporaryFolder()
  const documents = ['ARCHITECTURE', 'CHANGELOG', 'CONTRIBUTING', 'README', 'SECURITY'].map(name => `${name}.md`)
  const folders = ['api', 'bench', 'bin', 'client', 'console', 'deploy', 'docs', 'migrations', 'src', 'test']
  for (const name of [...documents, ...folders, 'biome.json', 'package.json', 'tsconfig.json']) {
    // The packages of the benchmark are large.
    const filter = (path: string) => basename(path) !== 'node_modules'
    cpSync(join(root, name), join(copy.path, name), { recursive: true, filter })
  }
  symlinkSync(join(root, 'node_modules'), join(copy.path, 'node_modules'))
  return copy
}

/** A guide, and the changes that it asks for, in order. */
export class Guide {
  readonly text: string
  readonly changes: readonly Change[]

  constructor(name: string) {
    this.text = readFileSync(join(root, 'docs', 'how-to', `${name}.md`), 'utf8')
    this.changes = [...this.text.matchAll(anyChange)].map(({ groups = {} }) => changeOf(groups))
  }

  /** The files that it changes or adds. */
  get files(): readonly string[] {
    return [...new Set(this.changes.map(({ file }) => file))]
  }

  /** Applies the changes to the files of a folder. */
  follow(folder: string): void {
    for (const { file, apply } of this.changes) apply(join(folder, file))
  }
}

interface Change {
  readonly file: string
  readonly apply: (path: string) => void
}

/**
 * One of: "New file `…`:" and a block; "In `…`, before `…`:" or "after" and a block; "In `…`, replace `…` by `…`." They
 * are indented like the steps of a numbered list.
 */
const anyChange =
  /^(?<indent> {3,4})(?:New file `(?<added>[^`]+)`:|In `(?<file>[^`]+)`, (?:(?<side>before|after) `(?<beside>[^`]+)`:|replace\s+`(?<old>[^`]+)`\s+by\s+`(?<by>[^`]+)`\.))(?:\n\n\k<indent>```\n(?<block>[\s\S]*?)^\k<indent>```)?$/gm

function changeOf(groups: Readonly<Record<string, string | undefined>>): Change {
  const { indent, added, file = '', side, beside, old = '', by = '', block = '' } = groups
  const text = block.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
  if (added !== undefined) return { file: added, apply: path => addFile(numbered(path), text) }
  if (beside === undefined) return { file, apply: path => edit(path, old, line => [line.replace(old, () => by)]) }
  const lines = text.replace(/\n$/, '')
  const apply = (path: string) => edit(path, beside, line => (side === 'before' ? [lines, line] : [line, lines]))
  return { file, apply }
}

/** Replaces NNNN in a path by the next free number of its folder. */
function numbered(path: string): string {
  return path.replace('NNNN', () => String(readdirSync(dirname(path)).length + 1).padStart(4, '0'))
}

function addFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text, { flag: 'wx' })
}

/** Changes the only line that contains the text. */
function edit(path: string, text: string, change: (line: string) => readonly string[]): void {
  const lines = readFileSync(path, 'utf8').split('\n')
  const found = lines.filter(line => line.includes(text)).length
  if (found !== 1) throw new Error(`The guide cannot be followed: ${found} lines of ${path} contain ${text}`)
  writeFileSync(path, lines.flatMap(line => (line.includes(text) ? change(line) : [line])).join('\n'))
}
