import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Refusal } from '../../src/graphql/errors.ts'
import { Documents } from '../../src/graphql/language/documents.ts'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { notInQuick } from '../support/form.ts'
import { repeat } from '../support/graphql.ts'
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

test('the weight of a document is about its size in memory', { skip: notInQuick }, t => {
  for (const [name, text] of [
    ['aliases', (n: number) => `{ posts(limit: 1) { x${n}: id ${repeat(320, i => `a${i}: id`)} } }`],
    // As in real requests, each text comes from a different body.
    ['long comments', (n: number) => JSON.parse(JSON.stringify(`{ __typename } # ${n} €${'x'.repeat(60_000)}`))],
    ['lists', (n: number) => `{ x${n}: __typename ${repeat(90, i => `a${i}: posts(limit: 1) { id }`)} }`],
    [
      'variables',
      (n: number) =>
        `query (${repeat(50, i => `$v${i}: Int = 1`)}) { x${n}: __typename ${repeat(50, i => `a${i}: posts(limit: $v${i}) { id }`)} }`,
    ],
    [
      'fragments',
      (n: number) =>
        `{ x${n}: __typename me { ...F0 } } ${repeat(100, i => `fragment F${i} on User { ...F${i + 1} }`)} fragment F100 on User { id }`,
    ],
  ] as const) {
    const documents = newDocuments()
    let weight = 0
    const grown = growthOf(() => {
      for (let count = 0; count < 20; count++) weight += documents.prepare(text(count)).weight
    })
    t.diagnostic(`${name}: ${Math.round(grown / 20)} bytes each, said to be ${weight / 20}`)
    assert.ok(grown < weight * 1.5, `${name} take ${grown} and weigh ${weight}`)
    documents.prepare('{ __typename }')
  }
})

test('the memory of a cached document is proportional to its length, whatever its operations share', () => {
  const text = `${repeat(80, n => `query Q${n} { ...F }`)} fragment F on Query { ${repeat(450, () => '__typename')} }`
  const { weight } = newDocuments().prepare(text)
  assert.ok(weight < 1024 * 1024, `${megabytes(weight)} for ${text.length} characters`)
})

test('a variable must be a single value: a list or an object is refused before it is coerced', () => {
  const operation = newDocuments().prepare('query ($v: Int) { posts(limit: $v) { id } }').operation(undefined)
  for (const v of [[], [1], {}, { a: 1 }]) {
    const message = 'Variable "$v" has invalid value: it must be a single value.'
    assert.throws(() => operation.coerce({ v }), { message })
  }
  assert.equal(operation.coerce({ v: null, other: [1] }).v, null)
})
