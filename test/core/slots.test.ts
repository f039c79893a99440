import assert from 'node:assert/strict'
import { test } from 'node:test'
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
