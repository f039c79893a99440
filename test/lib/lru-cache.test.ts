import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LruCache } from '../../src/lib/lru-cache.ts'

/** A cache, and the entries that it should contain: all that were set and not dropped. */
function watched(size: number, most?: number) {
  const kept = new Map<string, number>()
  const recent = new LruCache<string, { readonly key: string; readonly weight: number }>(size, {
    dropped: ({ key }) => kept.delete(key),
    ...(most !== undefined && { weights: { of: ({ weight }) => weight, most } }),
  })
  const set = (key: string, weight = 1) => {
    kept.set(key, weight)
    recent.set(key, { key, weight })
  }
  const weight = () => kept.values().reduce((sum, each) => sum + each, 0)
  return { recent, kept, set, weight }
}

test('an entry with more than half of the maximum weight is kept alone until the next entry is added', () => {
  const { recent, kept, set, weight } = watched(1000, 100)
  for (let count = 0; count < 20; count++) set(`small ${count}`)
  set('huge', 1000)
  assert.equal(recent.get('huge')?.weight, 1000)
  set('after it')
  set('later still', 60)
  assert.ok(!kept.has('huge'), [...kept.keys()].join())
  assert.ok(weight() <= 100)
})

test('an entry that is used all the time stays, whatever other entries are added', () => {
  for (const most of [undefined, 50]) {
    const { recent, set } = watched(20, most)
    set('used')
    for (let count = 0; count < 1000; count++) {
      set(`key ${count}`)
      assert.ok(recent.get('used') !== undefined, `lost after ${count}`)
    }
  }
})

test('unused entries are dropped before used ones', () => {
  const { recent, set } = watched(4)
  for (const key of ['a', 'b', 'c', 'd']) set(key) // a and b are the oldest now
  assert.ok(recent.get('a'))
  set('e')
  assert.equal(recent.get('b'), undefined)
  assert.ok(recent.get('a'))
})

test('after clear the cache is empty, has called no `dropped` callback, and accepts entries again', () => {
  const dropped: string[] = []
  const recent = new LruCache<string, string>(4, {
    dropped: entry => dropped.push(entry),
    weights: { of: () => 1, most: 4 },
  })
  for (const key of ['a', 'b', 'c']) recent.set(key, key)
  recent.clear()
  for (const key of ['a', 'b', 'c']) assert.equal(recent.get(key), undefined)
  assert.deepEqual(dropped, [])
  recent.set('d', 'd')
  recent.set('e', 'e')
  assert.equal(recent.get('d'), 'd')
})

test('after any calls the cache is within its limit and returns only entries that were added', () => {
  const step = fc.record({ key: fc.nat(30), weight: fc.integer({ min: 0, max: 10 }), read: fc.boolean() })
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 12 }), fc.array(step, { maxLength: 200 }), (size, steps) => {
      const { recent, kept, set, weight } = watched(size, 40)
      for (const { key, weight: heavy, read } of steps) {
        const name = String(key)
        const found = recent.get(name)
        assert.equal(found?.weight, found && kept.get(name))
        // Like the users of the cache: an entry that was found is not added again.
        if (!read && found === undefined) set(name, heavy)
        assert.ok(kept.size <= size, `${kept.size} of ${size}`)
        assert.ok(weight() <= 40, `${weight()} of 40`)
      }
    }),
  )
})
