import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { dateTimeOf } from '../../src/graphql/language/schema.ts'
import { startTestApp } from '../support/app.ts'
import { assertRefused, query, read } from '../support/graphql.ts'

const understood: Readonly<Record<string, string>> = {
  '2026-01-31T12:00:00Z': '2026-01-31T12:00:00.000Z',
  '2026-01-31T12:00Z': '2026-01-31T12:00:00.000Z',
  '2026-01-31T12:00:00.1Z': '2026-01-31T12:00:00.100Z',
  '2026-01-31T12:00:00,5Z': '2026-01-31T12:00:00.500Z',
  // Truncated, not rounded, so that the instant stays in the same second and year.
  '2026-12-31T23:59:59.999999999Z': '2026-12-31T23:59:59.999Z',
  '2026-01-31T13:00+0100': '2026-01-31T12:00:00.000Z',
  '2026-01-31T12:00:00-00:00': '2026-01-31T12:00:00.000Z',
  '2026-01-01T00:30:00+01:00': '2025-12-31T23:30:00.000Z',
  '2024-02-29T00:00:00Z': '2024-02-29T00:00:00.000Z',
  '2000-02-29T00:00:00Z': '2000-02-29T00:00:00.000Z',
  '0000-01-01T00:00:00Z': '0000-01-01T00:00:00.000Z',
  '0099-12-31T23:59:59Z': '0099-12-31T23:59:59.000Z',
  '9999-12-31T23:59:59.999Z': '9999-12-31T23:59:59.999Z',
}

test('R-GQL-11: a DateTime is read in every usual notation', () => {
  for (const [written, instant] of Object.entries(understood)) assert.equal(dateTimeOf(written), instant, written)
})

const refused: readonly unknown[] = [
  // Incomplete, or with an offset that does not exist.
  ...['', ' ', 'now', '2026', '2026-01-31', '12:00:00Z', '2026-01-31T12:00:00', '2026-01-31T12Z', '20260131T120000Z'],
  ...['2026-01-31 12:00:00Z', '2026-01-31T12:00:00 Z', ' 2026-01-31T12:00:00Z', '2026-01-31T12:00:00Z\n'],
  '2026-031T12:00Z',
  ...['2026-01-31T12:00:00+01', '2026-01-31T12:00:00+1:00', '2026-01-31T12:00:00+24:00', '2026-01-31T12:00:00+01:60'],
  ...['2026-01-31T12:00:00.Z', '2026-01-31T12:00:00.1234567890Z', '2026-01-31T12:00.5Z', '2026-W05-6T12:00:00Z'],
  // Not a real date, or not a real time.
  ...['2026-02-29T00:00:00Z', '1900-02-29T00:00:00Z', '2026-02-30T00:00:00Z', '2026-04-31T00:00:00Z'],
  ...['2026-00-10T00:00:00Z', '2026-13-10T00:00:00Z', '2026-01-00T00:00:00Z', '2026-01-32T00:00:00Z'],
  ...['2026-01-31T24:00:00Z', '2026-01-31T12:60:00Z', '2026-01-31T12:00:60Z', '2026-01-31T23:59:60Z'],
  // Outside of the years with four digits.
  ...['0000-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01', '+012026-01-31T12:00:00Z', '-0001-01-01T00:00:00Z'],
  // Not strings, or with digits other than ASCII.
  ...[0, 1769860800000, true, null, undefined, [], ['2026-01-31T12:00:00Z'], {}, '２０２６-01-31T12:00:00Z'],
]

test('R-GQL-11: a text without offset, a day that does not exist or another value is not a DateTime', () => {
  const expected = { message: /^DateTime must be an ISO-8601 date and time/ }
  for (const value of refused) assert.throws(() => dateTimeOf(value), expected, JSON.stringify(value))
})

const instants = fc.date({
  min: new Date('0000-01-02T00:00:00Z'),
  max: new Date('9999-12-30T23:59:59.999Z'),
  noInvalidDate: true,
})

test('R-GQL-10, R-GQL-11: an instant that we write is read as the same instant, and so it is with every offset', () => {
  const offset = fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }))
  fc.assert(
    fc.property(instants, offset, fc.boolean(), (instant, [west, hours, minutes], colon) => {
      const shift = (west ? -1 : 1) * (hours * 60 + minutes) * 60_000
      const local = new Date(instant.getTime() + shift).toISOString().slice(0, -1)
      const two = (number: number) => String(number).padStart(2, '0')
      const written = `${local}${west ? '-' : '+'}${two(hours)}${colon ? ':' : ''}${two(minutes)}`
      for (const text of [written, instant.toISOString()]) assert.equal(dateTimeOf(text), instant.toISOString(), text)
    }),
  )
})

test('R-GQL-11: a wrong DateTime is refused with 400, as a literal, as a variable and as its default', async () => {
  await using app = await startTestApp()
  const asVariable = 'query ($at: DateTime) { posts(publishedAfter: $at) { id } }'
  const literals = ['"2026-02-30T00:00:00Z"', '"x"', '5', 'true', 'NOW', '{ at: "2026-01-31T12:00Z" }']
  for (const literal of [...literals, '["2026-01-31T12:00Z"]']) {
    const asDefault = asVariable.replace('DateTime)', `DateTime = ${literal})`)
    for (const text of [`{ posts(publishedBefore: ${literal}) { id } }`, asDefault])
      assertRefused(await query(app, text), 400, 'GRAPHQL_VALIDATION_FAILED', /DateTime must be an ISO-8601/)
  }
  for (const at of ['2026-02-30T00:00:00Z', 5, true])
    assertRefused(await query(app, asVariable, { variables: { at } }), 400, 'BAD_USER_INPUT', /\$at.+DateTime must be/)
  assert.deepEqual(await read(app, asVariable, { variables: { at: null } }), { posts: [] })
  assert.deepEqual(await read(app, '{ posts(publishedAfter: """2026-01-31T12:00Z""") { id } }'), { posts: [] })
})
