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

function namedByTests(): Set<string> {
  const files = readdirSync(import.meta.dirname, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .filter(path => path !== import.meta.filename)
  return new Set(files.flatMap(path => namedIn(readFileSync(path, 'utf8'))))
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
const named = namedByTests()

test('every rule has one well-formed id of its own and a sentence', () => {
  assert.ok(page.ids.length > 0, 'docs/rules.md holds no rules')
  assertNone(
    page.ids.filter(id => !WELL_FORMED.test(id)),
    'ids that are not well formed',
  )
  assertNone(repeated(page.ids), 'ids given to more than one rule')
  assertNone(page.withoutSentence, 'rows that are not an id and a sentence')
})

test('every rule is named by a test or listed as not built yet, never both', () => {
  assertNone(
    page.ids.filter(id => !named.has(id) && !unbuilt.has(id)),
    'rules that no test names and the list lacks',
  )
  assertNone(
    page.unbuilt.filter(id => named.has(id)),
    'rules that a test names and that must leave the list',
  )
})

test('tests and the list name known rules only, the list each of them once', () => {
  assertNone(
    [...named].filter(id => !known.has(id)),
    'unknown rules named by tests',
  )
  assertNone(
    page.unbuilt.filter(id => !known.has(id)),
    'unknown rules in the list',
  )
  assertNone(repeated(page.unbuilt), 'rules that stand in the list more than once')
})

test('a rule is named by its whole id only', () => {
  assert.deepEqual(namedIn("test('R-USR-12: a title, (R-ERR-1)')"), ['R-USR-12', 'R-ERR-1'])
  assert.deepEqual(namedIn('XR-USR-1 R-USR-1b R-USR-1-2 r-usr-1'), [])
})

test('the page is read row by row', () => {
  const text = `| Id | Rule |\n|---|---|\n| R-USR-1 | One. |\n| usr 2 | |\n\n${LIST_TITLE}\n\nText.\n\n- R-USR-1\n`
  assert.deepEqual(parsePage(text), { ids: ['R-USR-1', 'usr 2'], withoutSentence: ['usr 2'], unbuilt: ['R-USR-1'] })
})
