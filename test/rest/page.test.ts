import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../../src/core/errors.ts'
import { pageBounds, pageOf } from '../../src/core/page.ts'
import { decodePage } from '../../src/rest/request.ts'

test('a list without limit and offset starts at its first item and has at most 1000 items', () => {
  assert.deepEqual(decodePage({}), { limit: 1000, offset: 0 })
  assert.deepEqual(decodePage({ limit: undefined, offset: undefined, other: 'x' }), { limit: 1000, offset: 0 })
})

test('limit and offset are accepted within their ranges, and refused as bad input outside', () => {
  const around = (bound: number) => fc.integer({ min: -3, max: 3 }).map(step => bound + step)
  const number = fc.oneof(around(0), around(pageBounds.limit), around(pageBounds.offset), fc.integer())
  fc.assert(
    fc.property(number, number, (limit, offset) => {
      const sound = limit >= 1 && limit <= pageBounds.limit && offset >= 0 && offset <= pageBounds.offset
      const request = () => decodePage({ limit: String(limit), offset: String(offset) })
      if (sound) assert.deepEqual(request(), { limit, offset })
      else assert.throws(request, (error: unknown) => error instanceof AppError && error.code === 'bad-input')
    }),
    { numRuns: 2000 },
  )
})

test('at most 100,000 items can be skipped', () => {
  assert.deepEqual(decodePage({ offset: '100000' }), { limit: 1000, offset: 100_000 })
  assert.throws(() => decodePage({ offset: '100001' }), { message: 'offset must be an integer from 0 to 100000' })
})

test('a limit or offset that is not a plain whole number, or is sent twice, is refused', () => {
  for (const value of [
    '',
    ' 1',
    '1 ',
    '+1',
    '-0',
    '1.0',
    '1e1',
    '0x1',
    'NaN',
    'Infinity',
    '１',
    '1\n',
    ['1', '2'],
    1,
    null,
  ]) {
    assert.throws(() => decodePage({ limit: value }), { message: 'limit must be an integer from 1 to 1000' })
    assert.throws(() => decodePage({ offset: value }), { message: /^offset must be an integer from 0 to / })
  }
})

test('a page has at most limit items, and tells exactly whether more items follow', () => {
  fc.assert(
    fc.property(fc.nat({ max: 30 }), fc.integer({ min: 1, max: 10 }), fc.nat({ max: 40 }), (total, limit, offset) => {
      const all = Array.from({ length: total }, (_, index) => index)
      const page = pageOf(all.slice(offset, offset + limit + 1), { limit, offset })
      assert.deepEqual(page, { items: all.slice(offset, offset + limit), more: total > offset + limit, limit, offset })
    }),
  )
})
