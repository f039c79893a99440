import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Place, placeFromText, placeToText } from '../../src/core/events.ts'

describe('A place as a text for clients', () => {
  it('becomes the same place again', () => {
    const places: readonly Place[] = [
      { position: 0, at: 0 },
      { position: 0, at: 0, readAt: 0 },
      { position: 7, at: 1_700_000_000_000 },
      { position: 7, at: 0, readAt: 1_700_000_000_000 },
      { position: Number.MAX_SAFE_INTEGER, at: 8_640_000_000_000_000, readAt: 8_640_000_000_000_000 },
    ]
    for (const place of places) assert.deepEqual(placeFromText(placeToText(place)), place)
  })

  it('is the only text for it: every other text is unknown, as is one of the former version', () => {
    const text = (numbers: string) => Buffer.from(numbers).toString('base64url')
    const unknown: readonly unknown[] = [
      ...[undefined, null, 7, {}, '', '7-7', `${text('7-8')}=`, ` ${text('7-8')}`, text('7-8').padEnd(1_000, 'A')],
      // The first one is of the former version, and the last ones are not numbers that JavaScript has.
      ...['7.7.1700000000000', '7', '7-', '7-8-9-10', '07-8', '7-8-09', '-7-8', '7-8 ', '7.5-8'].map(text),
      ...['99999999999999999-8', '9999999999999999-8'].map(text),
    ]
    for (const each of unknown) assert.equal(placeFromText(each), undefined, String(each))
    assert.deepEqual(placeFromText(text('7-8')), { position: 7, at: 8 })
  })
})
