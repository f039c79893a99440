import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../../src/core/errors.ts'
import { idOf, text } from '../../src/core/input.ts'
import { anyCharacter } from '../support/characters.ts'
import { runs } from '../support/form.ts'

const largest = 2n ** 53n - 1n

/** The expected result of idOf, computed with BigInt. */
function oracle(written: string): number | undefined {
  if (!/^-?\d+$/.test(written)) return undefined
  const value = BigInt(written)
  return String(value) === written && value >= 1n && value <= largest ? Number(value) : undefined
}

test('idOf returns exactly the number of the digits, or undefined', () => {
  const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: 22 })
  const around = fc.bigInt(largest - 20n, largest + 20n).map(String)
  const any = fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String)
  const nearly = fc.string({ unit: fc.constantFrom(...'019 +-.eExn_\n\0١'), maxLength: 5 })
  fc.assert(
    fc.property(fc.oneof(digits, around, any, nearly, fc.string({ unit: anyCharacter })), written => {
      assert.equal(idOf(written), oracle(written), JSON.stringify(written))
    }),
    { numRuns: runs(2_000, 20_000) },
  )
})

test('the smallest and the largest id are valid, and the numbers next to them are not', () => {
  assert.equal(idOf('1'), 1)
  assert.equal(idOf('9007199254740991'), Number(largest))
  for (const written of ['', '0', '-1', '01', '9007199254740992', '9007199254740993', '1\n', '1 ', '１']) {
    assert.equal(idOf(written), undefined, JSON.stringify(written))
  }
})

test('a text is accepted exactly if it is a string, short enough, without U+0000 and well formed', () => {
  const units = fc.oneof(
    fc.string({ maxLength: 12 }),
    fc.string({ unit: anyCharacter, maxLength: 12 }),
    fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 12 }).map(codes => String.fromCharCode(...codes)),
    fc.array(fc.constantFrom('\ud83c', '\udf88', '\0', 'a'), { maxLength: 12 }).map(parts => parts.join('')),
  )
  fc.assert(
    fc.property(units, value => {
      const sound = value.length <= 10 && ![...value].some(character => /^[\0\ud800-\udfff]$/.test(character))
      if (sound) assert.equal(text('name', value, 10), value)
      else assert.throws(() => text('name', value, 10), AppError)
    }),
    { numRuns: runs(1_000, 20_000) },
  )
})
