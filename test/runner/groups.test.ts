import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { groupsOf } from './groups.ts'

test('groups of test files hold every file once, and none takes longer than the average and one file more', () => {
  const durations = fc.dictionary(fc.string({ maxLength: 5 }), fc.integer({ min: 1, max: 10_000 }), { minKeys: 1 })
  const property = fc.property(durations, fc.integer({ min: 1, max: 8 }), (dictionary, count) => {
    const msOf = new Map(Object.entries(dictionary))
    const groups = groupsOf(msOf, count)
    assert.equal(groups.length, count)
    assert.deepEqual(groups.flat().toSorted(), [...msOf.keys()].toSorted())
    const sum = (files: readonly string[]) => files.reduce((total, file) => total + (msOf.get(file) ?? 0), 0)
    const most = sum([...msOf.keys()]) / count + Math.max(...msOf.values())
    for (const files of groups) assert.ok(sum(files) <= most)
  })
  fc.assert(property)
})
