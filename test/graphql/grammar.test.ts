import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { transports } from './support/requests.ts'

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
  }
})
