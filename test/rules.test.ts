import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const page = readFileSync(join(import.meta.dirname, '..', 'docs', 'rules.md'), 'utf8')
const [tables = '', list = ''] = page.split('## Not built yet\n')
const rows = tables.match(/^\|(?! *Id|:?-).*$/gm) ?? []
/** A row of an id and a sentence. */
const wellFormed = /^\| *(R-(?:API|GQL|SUB|USR|ORD|PAY|AUTH|ERR|LIM)-[1-9][0-9]*) *\| *[^| ][^|]*\|$/
const ids = rows.map(row => wellFormed.exec(row)?.[1] ?? '')
const unbuilt = Array.from(list.matchAll(/^- (.*?) *$/gm), ([, id = '']) => id)

/** The titles of the tests in a source file: literal, at the start of a line, and of tests that are not skipped. */
function titlesIn(source: string): string[] {
  const titles = source.matchAll(
    /^ *(?:test|it)\(\s*(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`)(?!,\s*\{[^}]*\b(?:skip|todo)\b)/gm,
  )
  return Array.from(titles, ([, single, double, template]) => single ?? double ?? template ?? '')
}

const files = globSync('**/*.*', { cwd: import.meta.dirname, exclude: ['rules.test.ts'] })
const textOf = (file: string) => readFileSync(join(import.meta.dirname, file), 'utf8')
const namedIn = (text: string) => text.match(/(?<![\w-])R-[A-Z]+-[0-9]+(?![\w-])/g) ?? []
const titles = files.filter(file => file.endsWith('.test.ts')).flatMap(file => titlesIn(textOf(file)))
const named = new Set(titles.flatMap(namedIn))

test('every rule has a unique, well-formed id and a sentence', () => {
  assert.ok(rows.length > 0, 'docs/rules.md holds no rules')
  const unsound = rows.filter(row => !wellFormed.test(row))
  assert.deepEqual(unsound, [], 'rows that are not a well-formed id and a sentence')
  const repeated = ids.filter((id, index) => ids.indexOf(id) !== index)
  assert.deepEqual(repeated, [], 'ids given to more than one rule')
})

test('every rule is named in the title of a test or listed once as not built yet, never both', () => {
  const untested = ids.filter(id => !named.has(id) && !unbuilt.includes(id))
  assert.deepEqual(untested, [], 'rules that neither a test title nor the list names')
  const built = unbuilt.filter((id, index) => named.has(id) || unbuilt.indexOf(id) !== index)
  assert.deepEqual(built, [], 'rules in the list that a test names, or that are there twice')
})

test('tests and the list name only known rules', () => {
  const unknown = [...files.flatMap(file => namedIn(textOf(file))), ...unbuilt].filter(id => !ids.includes(id))
  assert.deepEqual(unknown, [], 'unknown rules in the files of the tests, or in the list')
})
