import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { executeSync, getIntrospectionQuery, parse } from 'graphql'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { startTestApp } from '../support/app.ts'
import { assertRefused, dataOf, query, repeat } from '../support/graphql.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'

const schema = loadSchema()

/** The introspection query of graphql-js, which GraphiQL, GraphQL Code Generator, Apollo and many other tools send. */
const usual: Readonly<Record<string, string>> = {
  'with its default options': getIntrospectionQuery(),
  'without descriptions': getIntrospectionQuery({ descriptions: false }),
  'with all options': getIntrospectionQuery({
    descriptions: true,
    specifiedByUrl: true,
    directiveIsRepeatable: true,
    schemaDescription: true,
    inputValueDeprecation: true,
    oneOf: true,
  }),
}

describe('An introspection query', () => {
  const app = shared(() => startTestApp({ RATE_LIMIT_MAX: '0' }))

  for (const [what, text] of Object.entries(usual)) {
    it(`of the usual tools gets the same answer as from graphql-js, ${what}`, async () => {
      const { data } = executeSync({ schema, document: parse(text) })
      for (let time = 0; time < 2; time++)
        assert.deepEqual(dataOf(await query(app, text)), JSON.parse(JSON.stringify(data)))
    })
  }

  it('with a too large answer is refused, and 5,000 fields are allowed', async () => {
    const asked = (times: number) => repeat(times, n => `a${n}: __type(name: "User") { ...F }`)
    const fragment = `fragment F on __Type { ${repeat(199, n => `n${n}: name`)} }`
    dataOf(await query(app, `{ ${asked(25)} } ${fragment}`))
    const beyond = `{ ${asked(25)} __type(name: "nobody") { name } } ${fragment}`
    const message = 'The answer about the schema has more than 5000 fields.'
    const { extensions } = assertRefused(await query(app, beyond), 400, 'COMPLEXITY_LIMIT_EXCEEDED', message)
    assert.deepEqual({ ...extensions }, { code: 'COMPLEXITY_LIMIT_EXCEEDED', limit: 5000 })
    using socket = await SocketClient.connect(app)
    assert.equal((await socket.ask(beyond)).errors?.[0]?.message, message)
  })

  const large: Readonly<Record<string, string>> = {
    'the same scalar of every type': `{ __schema { ${repeat(33, n => `a${n}: types { ...F }`)} } } fragment F on __Type { ${repeat(240, n => `k${n}: kind`)} }`,
    'lists within lists': `{ __schema { ${repeat(30, n => `a${n}: types { fields { args { type { ...T } } type { ...T } } }`)} } } fragment T on __Type { kind name ofType { kind name ofType { kind name } } }`,
  }
  for (const [what, text] of Object.entries(large)) {
    it(`with a too large answer is refused: ${what}`, async () => {
      assertRefused(await query(app, text), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
    })
  }
})
