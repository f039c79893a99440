import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Slots } from '../../src/core/slots.ts'

test('it has the items that were added and not taken', () => {
  const slots = new Slots<{ readonly name: string }>()
  const [a, b, c] = [{ name: 'a' }, { name: 'b' }, { name: 'c' }]
  const ofA = slots.add(a)
  const ofB = slots.add(b)
  assert.equal(slots.take(ofA), a)
  assert.equal(slots.take(ofA), undefined)
  slots.add(c)
  assert.equal(slots.size, 2)
  assert.deepEqual(new Set(slots), new Set([b, c]))
  assert.equal(slots.take(ofB), b)
  assert.equal(slots.size, 1)
})

test('small garbage collections free the items that were taken, after a full one too', () => {
  setFlagsFromString('--expose-gc')
  const collect: (options?: { readonly type: 'minor' }) => void = runInNewContext('gc')
  const slots = new Slots<object>()
  const present: number[] = []
  const pass = (items: number) => {
    for (let count = 0; count < items; count++) {
      present.push(slots.add({ content: new Array(500).fill(count) }))
      if (present.length > 64) slots.take(present.shift() ?? 0)
    }
  }
  pass(1_000)
  collect()
  const before = process.memoryUsage().heapUsed
  pass(2_000)
  for (let times = 0; times < 3; times++) collect({ type: 'minor' })
  const kept = process.memoryUsage().heapUsed - before
  assert.ok(kept < 1_000_000, `${kept} bytes of 8 MB are kept`)
})
