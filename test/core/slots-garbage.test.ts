import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

// In a process of its own: what V8 has learned from other tests, for example to allocate an array in the old space at
// once, would decide what a small collection can free.
const flags = ['--expose-gc', '--single-threaded', '--no-allocation-site-pretenuring']

test('small garbage collections free the items that were taken, after a full one too', async () => {
  const program = join(import.meta.dirname, 'slots-garbage.ts')
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, program])
  const kept = Number(stdout)
  assert.ok(kept < 1_000_000, `${kept} bytes of 8 MB are kept`)
})
