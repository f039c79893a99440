import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isExact, memberText } from '../../src/server/exact-number.ts'

test('a field is found by its name, escaped or not, only in the outermost object, and the last one counts', () => {
  for (const [json, text] of [
    ['{"amount":1.50}', '1.50'],
    ['{"a":{"amount":1},"amount": 2 }', '2'],
    ['{"amount":1,"amount":3}', '3'],
    ['{"\\u0061mount":4}', '4'],
    ['{"amount":[{"amount":5}]}', ''],
    ['{"a":"amount","b":6}', ''],
    ['{"amount":7,"b":{"c":8}}', '7'],
  ] as const) {
    assert.equal(memberText(json, 'amount'), text, json)
  }
})

test('a name is read only once, whatever its length and the size of its value', t => {
  const json = `{"\\u0061${'a'.repeat(1_000)}":[${'{"":0},'.repeat(1_000)}0],"amount":1.0000000000000001}`
  const parse = t.mock.method(JSON, 'parse')
  assert.equal(isExact(json, 'amount', 1), false)
  assert.ok(parse.mock.callCount() <= 1, `${parse.mock.callCount()} times`)
})
