import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Documents } from '../../src/graphql/documents.ts'
import { Refusal } from '../../src/graphql/errors.ts'
import { loadSchema } from '../../src/graphql/schema.ts'
import { repeat } from '../support/graphql.ts'

const schema = loadSchema()

function newDocuments(): Documents {
  return new Documents({ schema, maxDepth: 5, suggestions: false })
}

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** How many more bytes are in use after some work, what is no longer needed left out. */
function growth(work: () => void): number {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  work()
  collectGarbage()
  return process.memoryUsage().heapUsed - before
}

const megabytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MiB`

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
  const grown = growth(() => {
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

test('a stream of small documents takes a bounded amount of memory', t => {
  const documents = newDocuments()
  const grown = growth(() => {
    for (let count = 0; count < 4000; count++) documents.prepare(`{ a${count}: __typename }`)
  })
  t.diagnostic(`4,000 documents took ${megabytes(grown)}`)
  assert.ok(grown < 32 * 1024 * 1024, megabytes(grown))
  assert.ok(documents.prepare('{ __typename }'))
})

test('a stream of large documents takes no more than the bound of 64 MiB', t => {
  const documents = newDocuments()
  const grown = growth(() => {
    for (let count = 0; count < 150; count++) {
      documents.prepare(`{ posts(limit: 1) { x${count}: id ${repeat(600, n => `a${n}: id`)} } }`)
    }
  })
  t.diagnostic(`150 documents of 600 fields took ${megabytes(grown)}`)
  assert.ok(grown < 64 * 1024 * 1024, megabytes(grown))
  assert.ok(documents.prepare('{ __typename }'))
})

// Fails, both: a document weighs what its fields do, and nothing for its text.
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
    const grown = growth(() => {
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
    const grown = growth(() => {
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
