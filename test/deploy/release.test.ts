import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'

const root = join(import.meta.dirname, '..', '..')
const yaml = createRequire(import.meta.url)('js-yaml') as { load(text: string): unknown }
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const manifestOf = (path: string) => JSON.parse(read(path)) as { version: string; scripts: Record<string, string> }
const workflows = globSync('.github/**/*.yml', { cwd: root })

test('workflows use actions by the commit of a named version, and files of this repository that exist', () => {
  const used = workflows.flatMap(file => {
    yaml.load(read(file))
    return Array.from(read(file).matchAll(/\buses: (.+)$/gm), ([, action = '']) => action)
  })
  assert.ok(used.length > 0)
  for (const action of used) {
    if (action.startsWith('./')) assert.ok(existsSync(join(root, action)), action)
    else assert.match(action, /^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  }
  const named = workflows.flatMap(file => read(file).match(/\b(?:deploy|\.ci|client)\/?[\w.]*/g) ?? [])
  for (const path of named) assert.ok(existsSync(join(root, path)), path)
})

test('the service, its client and the changelog have one version, for which the release has notes', () => {
  const { version } = manifestOf('package.json')
  assert.equal(manifestOf('client/package.json').version, version)
  const [, notes = ''] = read('CHANGELOG.md').split(/^## (?=\d)/m)
  assert.match(notes, new RegExp(`^${version.replaceAll('.', '\\.')} \\(\\d{4}-\\d\\d-\\d\\d\\)\n\n### What is new\n`))
})

test('every npm script that a document, a workflow or a test names exists', () => {
  const { scripts } = manifestOf('package.json')
  const documents = globSync(['*.md', 'docs/**/*.md', 'client/*.md', 'test/**/*.ts', 'deploy/**/*.*'], { cwd: root })
  for (const file of [...documents, ...workflows]) {
    for (const [, name = ''] of read(file).matchAll(/\bnpm run (?:-s )?([a-z][a-z:]*)/g))
      assert.ok(name in scripts, `${file} names npm run ${name}`)
  }
})
