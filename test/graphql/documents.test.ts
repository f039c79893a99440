import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Refusal } from '../../src/graphql/errors.ts'
import { Documents } from '../../src/graphql/language/documents.ts'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { notInQuick } from '../support/form.ts'
import { growthOf, megabytes } from './support/memory.ts'

const schema = loadSchema()

function newDocuments(): Documents {
  return new Documents({ schema, maxDepth: 5, suggestions: false })
}

test('an invalid document is refused every time, and not cached', { skip: notInQuick }, () => {
  const documents = newDocuments()
  const refused = [
    '{',
    '{ nothing }',
    '{ posts { author { posts { author { posts { author { id } } } } } } }',
    ','.repeat(70_000),
  ]
  for (const text of [...refused, ...refused]) assert.throws(() => documents.prepare(text), Refusal)
  const grown = growthOf(() => {
    for (let count = 0; count < 1000; count++) {
      assert.throws(() => documents.prepare(`{ a${count} # ${'x'.repeat(20_000)}`), Refusal)
    }
  })
  assert.ok(grown < 8 * 1024 * 1024, megabytes(grown))
})

/** Unused documents are evicted after this many others. */
for (const [what, others, text] of [
  ['2,000 small ones', 2000, (count: number) => `{ a${count}: __typename }`],
  ['64 MiB of large ones', 560, (count: number) => `{ __typename } # ${count} €${'x'.repeat(60_000)}`],
] as const) {
  test(`an unused document is evicted after ${what}, and not much earlier`, { skip: notInQuick }, () => {
    const documents = newDocuments()
    const prepared = documents.prepare(text(0))
    for (let count = 1; count < others / 3; count++) documents.prepare(text(count))
    assert.equal(documents.prepare(text(0)), prepared)
    for (let count = 1; count <= others; count++) documents.prepare(text(10_000 + count))
    assert.notEqual(documents.prepare(text(0)), prepared)
  })
}

test('a variable must be a single value: a list or an object is refused before it is coerced', () => {
  const operation = newDocuments().prepare('query ($v: Int) { posts(limit: $v) { id } }').operation(undefined)
  for (const v of [[], [1], {}, { a: 1 }]) {
    const message = 'Variable "$v" has invalid value: it must be a single value.'
    assert.throws(() => operation.coerce({ v }), { message })
  }
  assert.equal(operation.coerce({ v: null, other: [1] }).v, null)
})
