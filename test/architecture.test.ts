import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import { test } from 'node:test'

type Outside = 'anything' | 'builtins' | 'nothing'
type Row = { inside: 'everything' | string[]; outside: Outside }

/**
 * The allowed imports. A part is a file directly in src/ or a folder of src/; each may always import itself.
 * `inside`: the other parts of src/ it may import, beside lib. `outside`: `anything` is packages and node: builtins.
 */
const DIRECTIONS: Record<string, Row> = {
  'main.ts': { inside: 'everything', outside: 'anything' },
  'app.ts': {
    inside: ['wiring', 'config.ts', 'rest', 'graphql', 'http', 'storage', 'events', 'limits', 'security', 'core'],
    outside: 'anything',
  },
  wiring: {
    inside: ['config.ts', 'graphql', 'http', 'storage', 'events', 'limits', 'mail', 'security', 'tracing', 'core'],
    outside: 'anything',
  },
  threads: {
    inside: ['app.ts', 'wiring', 'config.ts', 'http', 'storage', 'events', 'limits', 'security', 'core'],
    outside: 'anything',
  },
  commands: {
    inside: ['threads', 'app.ts', 'wiring', 'config.ts', 'http', 'storage', 'security', 'core'],
    outside: 'builtins',
  },
  'config.ts': { inside: ['settings', 'core'], outside: 'builtins' },
  settings: { inside: ['core'], outside: 'builtins' },
  rest: { inside: ['http', 'core'], outside: 'anything' },
  graphql: { inside: ['http', 'core'], outside: 'anything' },
  http: { inside: ['core'], outside: 'anything' },
  storage: { inside: ['core'], outside: 'anything' },
  events: { inside: ['core'], outside: 'anything' },
  tracing: { inside: ['core'], outside: 'anything' },
  limits: { inside: ['core'], outside: 'anything' },
  mail: { inside: ['core'], outside: 'anything' },
  security: { inside: ['core'], outside: 'anything' },
  core: { inside: [], outside: 'nothing' },
  lib: { inside: [], outside: 'builtins' },
}

/** Code that only some parts of src/ may contain, outside of comments. */
const RESERVED: { what: string; pattern: RegExp; parts: string[] }[] = [
  { what: 'reads process.env', pattern: /\bprocess\s*(\?\.|\.|\[\s*['"`])\s*env\b/, parts: ['config.ts'] },
  {
    what: 'takes env from process',
    pattern: /\benv\b[^{}]*\}\s*(=|from)\s*['"]?(node:)?process\b/,
    parts: ['config.ts'],
  },
  {
    what: 'speaks of HTTP',
    pattern: /\bheaders?\b|idempotency-key|query ?string|request body|['"`]\/\w/i,
    parts: Object.keys(DIRECTIONS).filter(part => part !== 'core'),
  },
  { what: 'imports values of node:http', pattern: /\bimport\s+(?!type\b)[^'"]*['"]node:http['"]/, parts: [] },
  { what: "names an engine's module", pattern: /\bstorage\/(sqlite|postgres)\//, parts: ['storage'] },
]

const STRING_OR_COMMENT = /('(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)|\/\/[^\n]*|\/\*[\s\S]*?\*\//g
const IMPORT = new RegExp(
  [
    /(?<![\w.$])(?:import|export)(?:\s+type(?=\s*[\w{*]))?/,
    /(?:[\w\s{},*$]*?\bfrom\b)?\s*\(?\s*/,
    /(?<quote>['"`])(?<name>[^'"`\n]+)\k<quote>/,
  ]
    .map(part => part.source)
    .join(''),
  'g',
)

type Files = Map<string, string>
type Import = { name: string; target: string | undefined }

function violations(files: Files): string[] {
  const sources = [...files].filter(([path]) => path.endsWith('.ts'))
  const code = new Map(sources.map(([path, source]) => [path, withoutComments(source)]))
  const imports = new Map([...code].map(([path, source]) => [path, importsOf(path, source)]))
  const unknown = [...code.keys()].filter(path => !(partOf(path) in DIRECTIONS))
  return [
    ...unknown.map(path => `${path} belongs to no part of the table`),
    ...[...imports].flatMap(([path, list]) => list.flatMap(each => importViolations(path, each, files))),
    ...[...code].flatMap(([path, source]) => textViolations(path, source)),
    ...cycles(imports),
  ]
}

function withoutComments(source: string): string {
  return source.replace(STRING_OR_COMMENT, (_, text: string | undefined) => text ?? ' ')
}

function importsOf(path: string, source: string): Import[] {
  return [...source.matchAll(IMPORT)].map(({ groups }) => {
    const name = groups?.name ?? ''
    const target = name.startsWith('.') ? posix.join(posix.dirname(path), name) : undefined
    return { name, target }
  })
}

function partOf(path: string): string {
  return path.split('/')[1] ?? ''
}

function importViolations(path: string, { name, target }: Import, files: Files): string[] {
  const { inside = [], outside } = DIRECTIONS[partOf(path)] ?? {}
  if (target === undefined) {
    const isAllowed = outside === 'anything' || (outside === 'builtins' && name.startsWith('node:'))
    return isAllowed ? [] : [`${path} may not import ${name}`]
  }
  if (!files.has(target)) return [`${path} imports ${name}, which is not in src`]
  const isAllowed = inside === 'everything' || [partOf(path), 'lib', ...inside].includes(partOf(target))
  return isAllowed ? [] : [`${path} may not import ${target}`]
}

function textViolations(path: string, source: string): string[] {
  const reserved = RESERVED.filter(({ pattern, parts }) => pattern.test(source) && !parts.includes(partOf(path)))
  return reserved.map(({ what }) => `${path} ${what}`)
}

/** Files, folders and parts that import each other, directly or in a longer circle. */
function cycles(imports: Map<string, Import[]>): string[] {
  return [(path: string) => path, posix.dirname, partOf].flatMap(groupOf => circles(importsBetween(groupOf, imports)))
}

/** A folder and the one that contains it may import each other. */
function importsBetween(groupOf: (path: string) => string, imports: Map<string, Import[]>): Map<string, Set<string>> {
  const groups = new Map<string, Set<string>>()
  for (const [path, list] of imports) {
    const from = groupOf(path)
    const targets = list.flatMap(({ target }) => (target === undefined ? [] : [groupOf(target)]))
    const others = targets.filter(to => !`${to}/`.startsWith(`${from}/`) && !`${from}/`.startsWith(`${to}/`))
    groups.set(from, new Set([...(groups.get(from) ?? []), ...others]))
  }
  return groups
}

function circles(imports: Map<string, Set<string>>): string[] {
  const done = new Set<string>()
  const found: string[] = []
  function visit(group: string, trail: string[]): void {
    if (trail.includes(group)) found.push(`cycle: ${[...trail.slice(trail.indexOf(group)), group].join(' -> ')}`)
    if (trail.includes(group) || done.has(group)) return
    for (const target of imports.get(group) ?? []) visit(target, [...trail, group])
    done.add(group)
  }
  for (const group of imports.keys()) visit(group, [])
  return found
}

function realTree(): Files {
  const root = join(import.meta.dirname, '..')
  const paths = globSync('src/**/*.*', { cwd: root }).map(path => path.split(sep).join('/'))
  return new Map(paths.map(path => [path, readFileSync(join(root, path), 'utf8')]))
}

test('the source tree keeps its import directions, and what only some parts may do is only there', () => {
  const files = realTree()
  assert.ok(files.size > 0, 'no file was found in src')
  const found = violations(files)
  assert.equal(found.length, 0, found.join('\n'))
})

test("ARCHITECTURE.md names each use of a library's private parts, with its file", () => {
  const privateName = /(?:\.|\{ )(_(?!links\b)[a-z]\w*)|\b(parsedStatements)\b/gi
  const uses = [...realTree()].flatMap(([path, text]) =>
    [...text.matchAll(privateName)].map(([, member, list]) => `${member ?? list} in ${path.replace('src/', '')}`),
  )
  const [, section = ''] = readFileSync(join(import.meta.dirname, '..', 'ARCHITECTURE.md'), 'utf8').split(
    '## What reaches beneath a library\n',
  )
  const rows = section.slice(0, section.indexOf('\n## ')).split('\n')
  const named = rows.flatMap(row => {
    const [, name = '', files = ''] = row.split('|')
    return [...files.matchAll(/`([^`]+)`/g)].map(([, file]) => `${/`(\w+)`/.exec(name)?.[1]} in ${file}`)
  })
  assert.ok(uses.length > 0)
  assert.deepEqual([...new Set(uses)].toSorted(), named.filter(use => /^(_|parsed)/.test(use)).toSorted())
})
