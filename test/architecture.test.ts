import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, relative, sep } from 'node:path'
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
    inside: ['wiring', 'config.ts', 'rest', 'graphql', 'server', 'storage', 'events', 'limits', 'security', 'core'],
    outside: 'anything',
  },
  wiring: {
    inside: ['config.ts', 'graphql', 'server', 'storage', 'events', 'limits', 'security', 'core'],
    outside: 'anything',
  },
  threads: {
    inside: ['app.ts', 'wiring', 'config.ts', 'server', 'storage', 'events', 'limits', 'security', 'core'],
    outside: 'anything',
  },
  commands: {
    inside: ['threads', 'app.ts', 'wiring', 'config.ts', 'server', 'storage', 'security', 'core'],
    outside: 'builtins',
  },
  'config.ts': { inside: ['settings', 'core'], outside: 'builtins' },
  settings: { inside: [], outside: 'builtins' },
  rest: { inside: ['server', 'core'], outside: 'anything' },
  graphql: { inside: ['server', 'core'], outside: 'anything' },
  server: { inside: ['core'], outside: 'anything' },
  storage: { inside: ['core'], outside: 'anything' },
  events: { inside: ['core'], outside: 'anything' },
  limits: { inside: ['core'], outside: 'anything' },
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

const ANY_TYPE = /:\s*any\b|\bas\s+any\b|[<,]\s*any\s*(\[\]\s*)*[>,]/
const KEBAB_CASE = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$/
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
  return [
    ...[...files.keys()].flatMap(nameViolations),
    ...[...imports].flatMap(([path, list]) => list.flatMap(each => importViolations(path, each, files))),
    ...[...code].flatMap(([path, source]) => textViolations(path, source)),
    ...cycles(imports),
  ]
}

function withoutComments(source: string): string {
  return source.replace(STRING_OR_COMMENT, (_, text: string | undefined) => text ?? ' ')
}

function withoutStrings(source: string): string {
  return source.replace(STRING_OR_COMMENT, "''")
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

function nameViolations(path: string): string[] {
  const known = !path.endsWith('.ts') || partOf(path) in DIRECTIONS
  return [
    ...(path.split('/').every(segment => KEBAB_CASE.test(segment)) ? [] : [`${path} is not kebab-case`]),
    ...(known ? [] : [`${path} belongs to no part of the table`]),
  ]
}

function importViolations(path: string, { name, target }: Import, files: Files): string[] {
  if (target === undefined) return mayImportOutside(partOf(path), name) ? [] : [`${path} may not import ${name}`]
  if (!target.endsWith('.ts')) return [`${path} imports ${name}, which does not end in .ts`]
  if (!files.has(target)) return [`${path} imports ${name}, which is not in src`]
  return mayImportInside(partOf(path), partOf(target)) ? [] : [`${path} may not import ${target}`]
}

function mayImportOutside(part: string, name: string): boolean {
  const outside = DIRECTIONS[part]?.outside
  return outside === 'anything' || (outside === 'builtins' && name.startsWith('node:'))
}

function mayImportInside(part: string, target: string): boolean {
  const inside = DIRECTIONS[part]?.inside ?? []
  return part === target || target === 'lib' || inside === 'everything' || inside.includes(target)
}

function textViolations(path: string, source: string): string[] {
  const reserved = RESERVED.filter(({ pattern, parts }) => pattern.test(source) && !parts.includes(partOf(path)))
  return [
    ...reserved.map(({ what }) => `${path} ${what}`),
    ...(ANY_TYPE.test(withoutStrings(source)) ? [`${path} uses the type any`] : []),
  ]
}

function cycles(imports: Map<string, Import[]>): string[] {
  const done = new Set<string>()
  const found: string[] = []
  function visit(path: string, trail: string[]): void {
    if (trail.includes(path)) found.push(`cycle: ${[...trail.slice(trail.indexOf(path)), path].join(' -> ')}`)
    if (trail.includes(path) || done.has(path)) return
    for (const { target } of imports.get(path) ?? []) {
      if (target !== undefined) visit(target, [...trail, path])
    }
    done.add(path)
  }
  for (const path of imports.keys()) visit(path, [])
  return found
}

function realTree(): Files {
  const root = join(import.meta.dirname, '..')
  const paths = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
  return new Map(paths.map(path => [relative(root, path).split(sep).join('/'), readFileSync(path, 'utf8')]))
}

/** A tree without any violation; each case below adds or replaces files. */
const SOUND: Record<string, string> = {
  'src/main.ts': "import { build } from './app.ts'\nimport { read } from './config.ts'\nimport './core/user.ts'",
  'src/app.ts':
    "import { users } from './rest/users.ts'\nimport { open } from './storage/open.ts'\nimport pg from 'pg'",
  'src/config.ts': "import { user } from './core/user.ts'\nimport fs from 'node:fs'\nconst port = process.env['PORT']",
  'src/core/user.ts': "// never process.env, storage/sqlite/engine.ts nor x: any\nexport const text = 'as any: any'",
  'src/core/post.ts': "import type { User } from './user.ts'\nimport { user } from './user.ts'",
  'src/rest/users.ts':
    "import {\n  type Server,\n  start,\n} from '../server/http.ts'\nexport * from '../core/user.ts'",
  'src/graphql/schema.graphql': 'type Query { many: Int }',
  'src/graphql/resolvers.ts': "const later = await import('../core/post.ts')",
  'src/server/http.ts':
    "import fastify from 'fastify'\nimport type { Server } from 'node:http'\nconst url = 'http://127.0.0.1'",
  'src/storage/sqlite/engine.ts': "import { DatabaseSync } from 'node:sqlite'",
  'src/storage/open.ts': "const path = '../storage/sqlite/engine.ts'\nimport './sqlite/engine.ts'",
  'src/storage/postgres/engine.ts': "import pg from 'pg'",
  'src/security/tokens.ts': "import { createHash } from 'node:crypto'",
  'src/events/feed.ts': "import { user } from '../core/user.ts'",
  'src/limits/redis.ts': "import { user } from '../core/user.ts'",
}

type Case = { guarantee: string; files: Record<string, string>; expected: string[] }

const CASES: Case[] = [
  imports('app never imports main', 'src/app.ts', './main.ts', 'src/main.ts', [
    'cycle: src/main.ts -> src/app.ts -> src/main.ts',
  ]),
  imports('config imports no part but settings and core', 'src/config.ts', './server/http.ts', 'src/server/http.ts'),
  imports('config imports no package', 'src/config.ts', 'pino', 'pino'),
  imports('rest never imports graphql', 'src/rest/more.ts', '../graphql/resolvers.ts', 'src/graphql/resolvers.ts'),
  imports('graphql never imports rest', 'src/graphql/more.ts', '../rest/users.ts', 'src/rest/users.ts'),
  imports('rest never imports storage', 'src/rest/more.ts', '../storage/open.ts', 'src/storage/open.ts'),
  imports('rest never imports limits', 'src/rest/more.ts', '../limits/redis.ts', 'src/limits/redis.ts'),
  imports('graphql never imports security', 'src/graphql/more.ts', '../security/tokens.ts', 'src/security/tokens.ts'),
  imports('server imports no interface', 'src/server/more.ts', '../rest/users.ts', 'src/rest/users.ts'),
  imports('storage imports no server', 'src/storage/more.ts', '../server/http.ts', 'src/server/http.ts'),
  imports('graphql never imports events', 'src/graphql/more.ts', '../events/feed.ts', 'src/events/feed.ts'),
  imports('events imports no storage', 'src/events/more.ts', '../storage/open.ts', 'src/storage/open.ts'),
  imports('limits imports no storage', 'src/limits/more.ts', '../storage/open.ts', 'src/storage/open.ts'),
  imports('security imports no config', 'src/security/more.ts', '../config.ts', 'src/config.ts'),
  imports('core imports no other part', 'src/core/more.ts', '../storage/open.ts', 'src/storage/open.ts'),
  imports('lib imports no core', 'src/lib/more.ts', '../core/user.ts', 'src/core/user.ts'),
  imports('core imports no package', 'src/core/more.ts', 'pino', 'pino'),
  imports('core imports no builtin', 'src/core/more.ts', 'node:crypto', 'node:crypto'),
  ...[
    "import type { A } from 'node:fs'",
    "import { type A } from 'node:fs'",
    "import a, * as b from 'node:fs'",
    "import {\n  a,\n  b as c,\n} from 'node:fs'",
    "export { a } from 'node:fs'",
    "export type { A } from 'node:fs'",
    "export * from 'node:fs'",
    'const a = await import("node:fs")',
    'let a: import("node:fs").Stats',
  ].map(line => source(`sees ${line.replace(/\s+/g, ' ')}`, 'src/core/more.ts', line, 'may not import node:fs')),
  source('every file belongs to a part', 'src/other/more.ts', '', 'belongs to no part of the table'),
  source(
    'imports end in .ts',
    'src/rest/more.ts',
    "import './users.js'",
    'imports ./users.js, which does not end in .ts',
  ),
  source('imports name existing files', 'src/rest/more.ts', "import './no.ts'", 'imports ./no.ts, which is not in src'),
  source('imports stay in src', 'src/rest/more.ts', "import '../../a.ts'", 'imports ../../a.ts, which is not in src'),
  source('only config reads the environment', 'src/core/more.ts', 'f(process.env.HOME)', 'reads process.env'),
  source('even inside a template', 'src/core/more.ts', 'f(`$' + '{process.env.HOME}`)', 'reads process.env'),
  source('nor takes it apart', 'src/server/more.ts', 'const { env } = process', 'takes env from process'),
  source('nor imports it', 'src/server/more.ts', "import { env } from 'node:process'", 'takes env from process'),
  source(
    'only storage names engines',
    'src/app.ts',
    "import './storage/postgres/engine.ts'",
    "names an engine's module",
  ),
  source('nor loads one', 'src/main.ts', "load('./storage/sqlite/engine.ts')", "names an engine's module"),
  source(
    'no value of node:http',
    'src/rest/more.ts',
    "import { type A, b } from 'node:http'",
    'imports values of node:http',
  ),
  source('core knows no header', 'src/core/more.ts', "read('Idempotency-Key')", 'speaks of HTTP'),
  source('nor a path', 'src/core/more.ts', "claim('/payments')", 'speaks of HTTP'),
  source('no variable is any', 'src/core/more.ts', 'const a: any = 1', 'uses the type any'),
  source('nothing is cast to any', 'src/core/more.ts', 'f(a as any)', 'uses the type any'),
  source('no type argument is any', 'src/core/more.ts', 'new Set<any>()', 'uses the type any'),
  source('nor one of several', 'src/core/more.ts', 'new Map<string, any>()', 'uses the type any'),
  source('files are kebab-case', 'src/core/orderItems.ts', '', 'is not kebab-case'),
  source('folders are kebab-case', 'src/core/order_items/one.ts', '', 'is not kebab-case'),
  source('other files are kebab-case too', 'src/graphql/Schema.graphql', '', 'is not kebab-case'),
  {
    guarantee: 'files import each other in no circle',
    files: {
      'src/core/a.ts': "import './b.ts'",
      'src/core/b.ts': "import { c } from './c.ts'",
      'src/core/c.ts': "export * from './a.ts'",
    },
    expected: ['cycle: src/core/a.ts -> src/core/b.ts -> src/core/c.ts -> src/core/a.ts'],
  },
  {
    guarantee: 'not even types are imported in a circle',
    files: { 'src/core/a.ts': "import type { B } from './b.ts'", 'src/core/b.ts': "import './a.ts'" },
    expected: ['cycle: src/core/a.ts -> src/core/b.ts -> src/core/a.ts'],
  },
]

function imports(guarantee: string, path: string, name: string, target: string, more: string[] = []): Case {
  return {
    guarantee,
    files: { [path]: `import x from '${name}'` },
    expected: [`${path} may not import ${target}`, ...more],
  }
}

function source(guarantee: string, path: string, text: string, problem: string): Case {
  return { guarantee, files: { [path]: text }, expected: [`${path} ${problem}`] }
}

test('the source tree keeps its import directions and its conventions', () => {
  const files = realTree()
  assert.ok(files.size > 0, 'no file was found in src')
  const found = violations(files)
  assert.equal(found.length, 0, found.join('\n'))
})

test('a tree that keeps all rules has no violations', () => {
  assert.deepEqual(violations(new Map(Object.entries(SOUND))), [])
})

for (const { guarantee, files, expected } of CASES) {
  test(`the check detects violations: ${guarantee}`, () => {
    assert.deepEqual(violations(new Map(Object.entries({ ...SOUND, ...files }))), expected)
  })
}

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
  assert.ok(uses.length > 2)
  assert.deepEqual(
    [...new Set(uses)].filter(use => !named.includes(use)),
    [],
  )
  const stale = named.filter(use => /^(_|parsed)/.test(use) && !uses.includes(use))
  assert.deepEqual(stale, [])
})
