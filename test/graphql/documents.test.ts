import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Documents } from '../../src/graphql/documents.ts'
import { Refusal } from '../../src/graphql/errors.ts'
import { loadSchema } from '../../src/graphql/schema.ts'
import { repeat } from '../support/graphql.ts'
import { collectGarbage, growthOf, megabytes } from '../support/memory.ts'

const schema = loadSchema()

function newDocuments(): Documents {
  return new Documents({ schema, maxDepth: 5, suggestions: false })
}

interface Kept {
  readonly count: number
  readonly weight: number
}

/** Prepares so many documents, and returns those that are still in memory after that. */
async function keptOf(documents: Documents, total: number, text: (count: number) => string): Promise<readonly Kept[]> {
  const prepare = (count: number) => {
    const document = documents.prepare(text(count))
    return { count, weight: document.weight, reference: new WeakRef(document) }
  }
  const prepared = Array.from({ length: total }, (_, count) => prepare(count))
  await turn() // until then a new WeakRef keeps what it refers to
  collectGarbage()
  // Used after the collection: what is kept is kept by the documents, which are still there.
  assert.ok(documents.prepare('{ __typename }'))
  return prepared.filter(({ reference }) => reference.deref() !== undefined)
}

test('a document is prepared once, and found by its text from then on', () => {
  const documents = newDocuments()
  const text = '{ posts { id } }'
  const prepared = documents.prepare(text)
  assert.equal(documents.prepare(text), prepared)
  assert.equal(documents.prepare(text).operation(undefined), prepared.operation(undefined))
  assert.notEqual(documents.prepare(`${text} `), prepared)
})

test('what is refused is refused every time, and not kept', () => {
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

test('a stream of new documents does not push out one that is in use all the time', () => {
  const documents = newDocuments()
  const text = 'query Used { posts { id title author { name } } }'
  const prepared = documents.prepare(text)
  for (let count = 0; count < 3000; count++) {
    documents.prepare(`{ a${count}: __typename }`)
    if (count % 100 === 0) assert.equal(documents.prepare(text), prepared, `after ${count}`)
  }
})

test('of a stream of small documents the latest are kept, at most 2,000', async t => {
  const documents = newDocuments()
  const total = 5000
  const kept = await keptOf(documents, total, count => `{ a${count}: __typename }`)
  t.diagnostic(`${kept.length} of ${total} documents are kept`)
  assert.ok(kept.length <= 2000, `${kept.length} documents are kept`)
  assert.ok(kept.length >= 1000, `only ${kept.length} documents are kept`)
  assert.equal(kept[0]?.count, total - kept.length, 'the latest are kept')
})

test('of a stream of large documents no more than 64 MiB are kept, by what they weigh', async t => {
  const documents = newDocuments()
  const text = (count: number) => `{ posts(limit: 1) { x${count}: id ${repeat(600, n => `a${n}: id`)} } }`
  const kept = await keptOf(documents, 150, text)
  const weight = kept.reduce((sum, each) => sum + each.weight, 0)
  t.diagnostic(`${kept.length} of 150 documents are kept, which weigh ${megabytes(weight)}`)
  assert.ok(weight <= 64 * 1024 * 1024, megabytes(weight))
  assert.ok(weight >= 16 * 1024 * 1024, `only ${megabytes(weight)}`)
})

// What a document weighs must count its text as well, not only its fields.
for (const [name, make] of [
  ['comments', (count: number, filler: string) => `{ __typename } # ${count} ${filler}`],
  [
    'texts',
    (count: number, filler: string) => `mutation { createPost(title: "${count}", content: "${filler}") { id } }`,
  ],
] as const) {
  test(`a stream of documents of long ${name} takes no more than the bound of 64 MiB`, t => {
    const documents = newDocuments()
    const filler = `€${'x'.repeat(60_000)}`
    const grown = growthOf(() => {
      // As they come: each text from a body of its own.
      for (let count = 0; count < 1100; count++) documents.prepare(JSON.parse(JSON.stringify(make(count, filler))))
    })
    t.diagnostic(`1,100 documents of 60,000 characters took ${megabytes(grown)}`)
    assert.ok(grown < 80 * 1024 * 1024, megabytes(grown))
    assert.ok(documents.prepare('{ __typename }'))
  })
}

test('a document weighs about what it takes', t => {
  for (const [name, text] of [
    ['aliases', (n: number) => `{ posts(limit: 1) { x${n}: id ${repeat(600, i => `a${i}: id`)} } }`],
    ['lists', (n: number) => `{ x${n}: __typename ${repeat(150, i => `a${i}: posts(limit: 1) { id }`)} }`],
    [
      'variables',
      (n: number) =>
        `query (${repeat(110, i => `$v${i}: Int = 1`)}) { x${n}: __typename ${repeat(110, i => `a${i}: posts(limit: $v${i}) { id }`)} }`,
    ],
    [
      'fragments',
      (n: number) =>
        `{ x${n}: __typename me { ...F0 } } ${repeat(150, i => `fragment F${i} on User { ...F${i + 1} }`)} fragment F150 on User { id }`,
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

test('what is kept of a document is in proportion to its length, whatever its operations share', () => {
  const text = `${repeat(160, n => `query Q${n} { ...F }`)} fragment F on Query { ${repeat(900, () => '__typename')} }`
  const { weight } = newDocuments().prepare(text)
  assert.ok(weight < 8 * 1024 * 1024, `${megabytes(weight)} for ${text.length} characters`)
})
