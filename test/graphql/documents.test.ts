import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Refusal } from '../../src/graphql/errors.ts'
import { Documents } from '../../src/graphql/language/documents.ts'
import { keptPlans } from '../../src/graphql/language/plans.ts'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { planQuery } from '../../src/graphql/query.ts'
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
    for (let count = 0; count < 400; count++) {
      assert.throws(() => documents.prepare(`{ a${count} # ${'x'.repeat(50_000)}`), Refusal)
    }
  })
  assert.ok(grown < 8 * 1024 * 1024, megabytes(grown))
})

/** Unused documents are evicted after this many others. */
for (const [what, others, text] of [
  ['2,000 small ones', 2000, (count: number) => `{ a${count}: __typename }`],
  ['32 MiB of large ones', 280, (count: number) => `{ __typename } # ${count} €${'x'.repeat(60_000)}`],
] as const) {
  test(`an unused document is evicted after ${what}, and not much earlier`, { skip: notInQuick }, () => {
    const documents = newDocuments()
    const use = (count: number) => {
      documents.prepare(text(count))
      return documents.prepare(text(count))
    }
    const [unused, usedAgain] = [use(0), use(1)]
    for (let count = 2; count <= others; count++) {
      use(count)
      if (count === Math.floor(others / 3)) assert.equal(documents.prepare(text(1)), usedAgain)
    }
    assert.notEqual(documents.prepare(text(0)), unused)
  })
}

test('a document is cached from its second use on, with its plans, if not a thousand others were used in between', () => {
  const documents = newDocuments()
  const plans = keptPlans(planQuery)
  const planOf = (text: string) => plans(documents.prepare(text).operation(undefined), {})
  const first = planOf('{ __typename }')
  for (let count = 0; count < 900; count++) documents.prepare(`{ a${count}: __typename }`)
  const second = planOf('{ __typename }')
  assert.notEqual(second, first)
  assert.equal(planOf('{ __typename }'), second)
  documents.prepare('{ b: __typename }')
  for (let count = 1000; count < 2100; count++) documents.prepare(`{ a${count}: __typename }`)
  assert.notEqual(planOf('{ b: __typename }'), planOf('{ b: __typename }'), 'its first use is forgotten')
  const operation = documents.prepare('{ c: __typename }').operation(undefined)
  assert.notEqual(plans(operation, {}), plans(operation, {}), 'a plan of a document that is not kept is not kept')
})

test('a variable must be a single value: a list or an object is refused before it is coerced', () => {
  const operation = newDocuments().prepare('query ($v: Int) { posts(limit: $v) { id } }').operation(undefined)
  for (const v of [[], [1], {}, { a: 1 }]) {
    const message = 'Variable "$v" has invalid value: it must be a single value.'
    assert.throws(() => operation.coerce({ v }), { message })
  }
  assert.equal(operation.coerce({ v: null, other: [1] }).v, null)
})
