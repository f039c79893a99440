import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Setting, settings } from '../src/config.ts'

test('.env.example lists every setting with its meaning and its default', () => {
  const lines = Object.entries<Setting>(settings).flatMap(([name, { meaning, fallback = '', default: other }]) => [
    '',
    `# ${meaning}${other === undefined ? '' : ` (default: ${other})`}`,
    `#${name}=${fallback}`,
  ])
  const expected = `# Copy this file to .env and remove the # before what you want to change.\n${lines.join('\n')}\n`
  // Lines are compared, not one text, so that a failure shows only the lines that differ.
  const found = readFileSync(join(import.meta.dirname, '..', '.env.example'), 'utf8')
  assert.deepEqual(found.split('\n'), expected.split('\n'))
})
