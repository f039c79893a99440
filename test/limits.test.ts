import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { settings } from '../src/config.ts'

const page = readFileSync(join(import.meta.dirname, '..', 'docs', 'limits.md'), 'utf8')
const rows = page
  .split('\n')
  .filter(line => line.startsWith('| ') && !line.startsWith('| What can grow'))
  .map(line => line.split('|').map(cell => cell.trim()))

test('every row of docs/limits.md names an existing test', () => {
  assert.ok(rows.length > 50)
  for (const [, quantity, , , named = ''] of rows) {
    const [, file, title = ''] = /^`([\w/-]+)`: (.+)$/.exec(named) ?? assert.fail(`${quantity}: ${named}`)
    const path = join(import.meta.dirname, `${file}.test.ts`)
    assert.ok(existsSync(path), `${quantity}: there is no ${file}.test.ts`)
    const text = readFileSync(path, 'utf8').replaceAll("\\'", "'")
    assert.ok(text.includes(title), `${quantity}: ${file} has no test "${title}"`)
  }
})

test('every setting that limits clients has a row in docs/limits.md', () => {
  const bounding = Object.keys(settings).filter(name =>
    /_(?:MAX|PER_CLIENT|PER_SECOND|TIMEOUT_MS|BYTES|GROUPS)/.test(name),
  )
  assert.ok(bounding.length > 8)
  for (const name of bounding) assert.ok(page.includes(`\`${name}\``), `docs/limits.md has no row with ${name}`)
})
