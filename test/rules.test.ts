import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const PAGE = join(import.meta.dirname, '..', 'docs', 'rules.md')
const LIST_TITLE = '## Not built yet'
const WELL_FORMED = /^R-(API|GQL|SUB|USR|ORD|PAY|AUTH|ERR|LIM)-[1-9][0-9]*$/
const RULE_ID = /(?<![\w-])R-[A-Z]+-[0-9]+(?![\w-])/g

type Page = { ids: string[]; withoutSentence: string[]; unbuilt: string[] }

function parsePage(text: string): Page {
  const [tables = '', list = ''] = text.split(`${LIST_TITLE}\n`)
  const rows = tables
    .split('\n')
    .filter(line => line.startsWith('|'))
    .map(cells)
    .filter(isRule)
  return {
    ids: rows.map(row => row[0] ?? ''),
    withoutSentence: rows.filter(row => row.length !== 2 || row[1] === '').map(row => row[0] ?? ''),
    unbuilt: list
      .split('\n')
      .filter(line => line.startsWith('- '))
      .map(line => line.slice(2).trim()),
  }
}

function cells(row: string): string[] {
  return row
    .replace(/^\||\|\s*$/g, '')
    .split('|')
    .map(cell => cell.trim())
}

function isRule(row: string[]): boolean {
  return row[0] !== 'Id' && !/^:?-+:?$/.test(row[0] ?? '')
}

function namedIn(text: string): string[] {
  return text.match(RULE_ID) ?? []
}

/** The titles of the tests in a source file: literal, at the start of a line, and of tests that are not skipped. */
function titlesIn(source: string): string[] {
  const titles = source.matchAll(
    /^ *(?:test|it)\(\s*(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`)(?!,\s*\{[^}]*\b(?:skip|todo)\b)/gm,
  )
  return Array.from(titles, ([, single, double, template]) => single ?? double ?? template ?? '')
}

function testFiles(): string[] {
  return readdirSync(import.meta.dirname, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .filter(path => path !== import.meta.filename)
}

function repeated(ids: string[]): string[] {
  return ids.filter((id, index) => ids.indexOf(id) !== index)
}

function assertNone(ids: string[], problem: string): void {
  const offending = [...new Set(ids)]
  assert.equal(offending.length, 0, `${problem}: ${offending.join(', ')}`)
}

const page = parsePage(readFileSync(PAGE, 'utf8'))
const known = new Set(page.ids)
const unbuilt = new Set(page.unbuilt)
const sources = testFiles().map(path => ({ isTest: path.endsWith('.test.ts'), text: readFileSync(path, 'utf8') }))
const named = new Set(sources.filter(({ isTest }) => isTest).flatMap(({ text }) => titlesIn(text).flatMap(namedIn)))
const mentioned = new Set(sources.flatMap(({ text }) => namedIn(text)))

test('every rule has a unique, well-formed id and a sentence', () => {
  assert.ok(page.ids.length > 0, 'docs/rules.md holds no rules')
  assertNone(
    page.ids.filter(id => !WELL_FORMED.test(id)),
    'ids that are not well formed',
  )
  assertNone(repeated(page.ids), 'ids given to more than one rule')
  assertNone(page.withoutSentence, 'rows that are not an id and a sentence')
})

test('every rule is named in the title of a test or listed as not built yet, never both', () => {
  assertNone(
    page.ids.filter(id => !named.has(id) && !unbuilt.has(id)),
    'rules that neither a test title nor the list names',
  )
  assertNone(
    page.unbuilt.filter(id => named.has(id)),
    'rules that a test names and that are still in the list',
  )
})

test('tests and the list name only known rules, and the list names each of them once', () => {
  assertNone(
    [...mentioned].filter(id => !known.has(id)),
    'unknown rules in the files of the tests',
  )
  assertNone(
    page.unbuilt.filter(id => !known.has(id)),
    'unknown rules in the list',
  )
  assertNone(repeated(page.unbuilt), 'rules that are in the list more than once')
})
