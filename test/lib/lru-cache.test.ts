import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LruCache } from '../../src/lib/lru-cache.ts'

interface Entry {
  readonly key: string
  readonly weight: number
}

/** Uses a cache as its users do: an entry that is found is not added again. */
function used(size: number, most: number, uses: readonly Entry[]): LruCache<string, Entry> {
  const cache = new LruCache<string, Entry>(size, { of: ({ weight }) => weight, most })
  for (const entry of uses) if (cache.get(entry.key) === undefined) cache.set(entry.key, entry)
  return cache
}

/** The entries that a cache has after these uses. Each is looked for in a cache of its own, because looking changes it. */
function kept(size: number, most: number, uses: readonly Entry[]): readonly Entry[] {
  return [...new Set(uses.map(({ key }) => key))].flatMap(key => used(size, most, uses).get(key) ?? [])
}

function weightOf(entries: readonly Entry[]): number {
  return entries.reduce((sum, { weight }) => sum + weight, 0)
}

const entries = (count: number) => Array.from({ length: count }, (_, n) => ({ key: `key ${n}`, weight: 1 }))

test('an entry with more than half of the maximum weight is kept alone until the next entry is added', () => {
  const huge = { key: 'huge', weight: 1000 }
  assert.ok(kept(1000, 100, [...entries(20), huge]).includes(huge))
  const later = kept(1000, 100, [...entries(20), huge, { key: 'x', weight: 1 }, { key: 'y', weight: 60 }])
  assert.ok(!later.includes(huge) && weightOf(later) <= 100)
  assert.ok(kept(1000, 100, entries(200)).length >= 50, 'and half of the weight is kept all the time')
})

test('an entry that is used all the time stays, whatever other entries are added', () => {
  const first = { key: 'used', weight: 1 }
  const uses = [first, ...entries(1000).flatMap(each => [each, { ...first }])]
  for (const most of [1000, 50]) assert.equal(used(20, most, uses).get('used'), first)
})

test('after any uses the cache is within its limits', () => {
  const entry = fc.record({ key: fc.nat(30).map(String), weight: fc.integer({ min: 0, max: 10 }) })
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 12 }), fc.array(entry, { maxLength: 100 }), (size, uses) => {
      const found = kept(size, 40, uses)
      assert.ok(found.length <= size && weightOf(found) <= 40, JSON.stringify(found))
      assert.ok(found.length > 0 || uses.length === 0)
    }),
  )
})
