import assert from 'node:assert/strict'
import { after, before, describe, it, test } from 'node:test'
import fc from 'fast-check'
import { Kind, parse, visit } from 'graphql'
import { Refusal } from '../../src/graphql/errors.ts'
import { Documents } from '../../src/graphql/language/documents.ts'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { startTestApp } from '../support/app.ts'
import { runs } from '../support/form.ts'
import type { Data } from './support/data.ts'
import { anyMutation, anyQuery } from './support/operations.ts'
import { persisted, sha256, transports } from './support/requests.ts'

const good = '{ posts { id } }'

/** Documents without an item where the grammar of the specification needs at least one. */
const empty: readonly string[] = [
  '',
  ' ,\n',
  '# no definition',
  '{}',
  '{ , }',
  '{ # no selection\n}',
  'query{}',
  'query Q{}',
  'query Q($n: Int){}',
  'query Q @include(if: true) {}',
  'mutation{}',
  'mutation M {}',
  'subscription{}',
  'subscription S {}',
  '{ me {} }',
  '{ __typename {} }',
  '{ __schema {} }',
  '{ posts { id author {} } }',
  'mutation { likePost(id: 1) {} }',
  'subscription { postAdded {} }',
  '{ ... {} }',
  '{ ... on Query {} }',
  '{ posts { id ... on Post {} } }',
  '{ posts { id ... @include(if: false) {} } }',
  '{ posts { ...F } } fragment F on Post {}',
  '{ posts { id } } fragment F on Post {}',
  'fragment F on Post {}',
  `${good} query Q {}`,
  `query Q {} ${good}`,
  'query Q() { posts { id } }',
  '{ posts() { id } }',
  '{ posts { id @include() } }',
  'query Q($n: []) { posts(limit: $n) { id } }',
  'type T {}',
  'extend type Post {}',
  'schema {}',
  'enum E {}',
  'union U =',
]

describe('A document without an item where the grammar needs one is refused, each time:', () => {
  let app: Awaited<ReturnType<typeof startTestApp>>
  before(async () => {
    app = await startTestApp({ RATE_LIMIT_MAX: '0' })
  })
  after(() => app[Symbol.asyncDispose]())

  for (const [name, send] of Object.entries(transports)) {
    const refused = [name === 'a socket' ? undefined : 400, 'GRAPHQL_PARSE_FAILED']

    it(`by ${name}, while a valid document goes on to run`, async () => {
      for (const text of empty) {
        for (const operationName of [null, 'Q', null]) {
          const { status, code } = await send(app, { query: text, operationName })
          assert.deepEqual([status, code], refused, JSON.stringify(text))
        }
      }
      assert.deepEqual((await send(app, { query: good })).data, { posts: [] })
    })

    it(`by ${name} with its hash, which is not learnt`, async () => {
      for (const text of empty.filter(each => each !== '')) {
        const hash = persisted(sha256(text))
        for (let time = 0; time < 2; time++) {
          const { status, code } = await send(app, { query: text, ...hash })
          assert.deepEqual([status, code], refused, JSON.stringify(text))
          assert.equal((await send(app, hash)).code, 'PERSISTED_QUERY_NOT_FOUND', JSON.stringify(text))
        }
      }
    })
  }
})

/** The error code of a document, if it is refused. */
function codeOf(documents: Documents, text: string): string | undefined {
  try {
    documents.prepare(text)
    return undefined
  } catch (error) {
    if (error instanceof Refusal) return error.code
    throw error
  }
}

const newDocuments = () => new Documents({ schema: loadSchema(), maxDepth: 5, suggestions: false })

test('empty lists and objects are values of the grammar, and only do not fit the schema', () => {
  for (const value of ['[]', '{}', '[{}]']) {
    for (const text of [
      `{ posts(limit: ${value}) { id } }`,
      `query ($n: Int = ${value}) { posts(limit: $n) { id } }`,
    ]) {
      assert.equal(codeOf(newDocuments(), text), 'GRAPHQL_VALIDATION_FAILED', text)
    }
  }
})

test('any operation is refused if any of its selection sets is empty, and is the same as before afterwards', () => {
  const noData: Data = { users: [], posts: [], comments: [] }
  const documents = newDocuments()
  const operations = fc.oneof(anyQuery(noData), anyMutation(noData, ['1']))
  const nothing = fc.constantFrom('', ' ', ',', '\n#\n')
  fc.assert(
    fc.property(operations, nothing, fc.nat(), ({ text }, blank, chosen) => {
      const verdict = codeOf(documents, text)
      const sets: { readonly start: number; readonly end: number }[] = []
      visit(parse(text), {
        [Kind.SELECTION_SET]({ loc }) {
          assert.ok(loc)
          sets.push(loc)
        },
      })
      const { start, end } = sets[chosen % sets.length] ?? assert.fail()
      const emptied = `${text.slice(0, start)}{${blank}}${text.slice(end)}`
      for (let time = 0; time < 2; time++) assert.equal(codeOf(documents, emptied), 'GRAPHQL_PARSE_FAILED', emptied)
      assert.equal(codeOf(documents, text), verdict)
    }),
    { numRuns: runs(500, 20_000) },
  )
})
