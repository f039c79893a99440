import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const PAGE = join(import.meta.dirname, '..', 'docs', 'rules.md')
const LIST_TITLE = '## Not built yet'
const WELL_FORMED = /^R-(API|GQL|SUB|USR|ORD|PAY|AUTH|ERR|LIM)-[1-9][0-9]*$/
const RULE_ID = /(?<![\w-])R-[A-Z]+-[0-9]+(?![\w-])/g

const [tables = '', list = ''] = readFileSync(PAGE, 'utf8').split(`${LIST_TITLE}\n`)
/** The rows of the tables: an id and a sentence. */
const rows = Array.from(
  tables.matchAll(/^\| *([^|]*?) *\| *([^|]*?) *\|(.*)$/gm),
  ([, id = '', sentence = '', more]) => ({
    id,
    isSound: WELL_FORMED.test(id) && sentence !== '' && more === '',
  }),
).filter(({ id }) => id !== 'Id' && !/^:?-+:?$/.test(id))
const ids = rows.map(({ id }) => id)
const unbuilt = Array.from(list.matchAll(/^- (.*?) *$/gm), ([, id = '']) => id)

/** The titles of the tests in a source file: literal, at the start of a line, and of tests that are not skipped. */
function titlesIn(source: string): string[] {
  const titles = source.matchAll(
    /^ *(?:test|it)\(\s*(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`)(?!,\s*\{[^}]*\b(?:skip|todo)\b)/gm,
  )
  return Array.from(titles, ([, single, double, template]) => single ?? double ?? template ?? '')
}

const sources = readdirSync(import.meta.dirname, { recursive: true, withFileTypes: true })
  .filter(entry => entry.isFile())
  .map(entry => join(entry.parentPath, entry.name))
  .filter(path => path !== import.meta.filename)
  .map(path => ({ isTest: path.endsWith('.test.ts'), text: readFileSync(path, 'utf8') }))
const namedIn = (text: string) => text.match(RULE_ID) ?? []
const named = new Set(sources.filter(({ isTest }) => isTest).flatMap(({ text }) => titlesIn(text).flatMap(namedIn)))
const mentioned = new Set(sources.flatMap(({ text }) => namedIn(text)))

test('every rule has a unique, well-formed id and a sentence', () => {
  assert.ok(ids.length > 0, 'docs/rules.md holds no rules')
  assert.equal(ids.length, tables.match(/^\|(?! *Id|:?-)/gm)?.length, 'rows with another number of cells')
  const unsound = rows.filter(({ isSound }) => !isSound)
  assert.deepEqual(unsound, [], 'rows that are not a well-formed id and a sentence')
  const repeated = ids.filter((id, index) => ids.indexOf(id) !== index)
  assert.deepEqual(repeated, [], 'ids given to more than one rule')
})

test('every rule is named in the title of a test or listed as not built yet, never both', () => {
  const untested = ids.filter(id => !named.has(id) && !unbuilt.includes(id))
  assert.deepEqual(untested, [], 'rules that neither a test title nor the list names')
  const built = unbuilt.filter(id => named.has(id))
  assert.deepEqual(built, [], 'rules that a test names and that are still in the list')
})

test('tests and the list name only known rules, and the list names each of them once', () => {
  const unknown = [...mentioned, ...unbuilt].filter(id => !ids.includes(id))
  assert.deepEqual(unknown, [], 'unknown rules in the files of the tests, or in the list')
  assert.equal(new Set(unbuilt).size, unbuilt.length)
})
