import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { executeSync, getIntrospectionQuery, parse } from 'graphql'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { startTestApp } from '../support/app.ts'
import { inForm } from '../support/form.ts'
import { assertRefused, dataOf, query, repeat } from '../support/graphql.ts'
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

describe('The introspection of the usual tools', () => {
  for (const [what, text] of Object.entries(usual)) {
    it(`gets the same answer as from graphql-js, ${what}`, async () => {
      await using app = await startTestApp()
      const { data } = executeSync({ schema, document: parse(text) })
      for (let time = 0; time < 2; time++)
        assert.deepEqual(dataOf(await query(app, text)), JSON.parse(JSON.stringify(data)))
    })
  }
})

type Kind = '__Schema' | '__Type' | '__Field' | '__InputValue' | '__EnumValue' | '__Directive'

const fieldsOf: Readonly<Record<Kind, readonly (readonly [name: string, to?: Kind])[]>> = {
  __Schema: [['description'], ['types', '__Type'], ['queryType', '__Type'], ['directives', '__Directive']],
  __Type: [
    ['kind'],
    ['name'],
    ['description'],
    ['fields', '__Field'],
    ['enumValues', '__EnumValue'],
    ['interfaces', '__Type'],
    ['possibleTypes', '__Type'],
    ['inputFields', '__InputValue'],
    ['ofType', '__Type'],
  ],
  __Field: [['name'], ['description'], ['args', '__InputValue'], ['type', '__Type']],
  __InputValue: [['name'], ['description'], ['defaultValue'], ['type', '__Type']],
  __EnumValue: [['name'], ['description']],
  __Directive: [['name'], ['locations'], ['description'], ['args', '__InputValue']],
}

/** An introspection query without duplicate keys, so that nothing is merged. The numbers decide its fields. */
function questionOf(choices: Iterator<number>): string {
  let keys = 0
  const choose = (below: number) => Number(choices.next().value) % below
  const selection = (kind: Kind, levels: number): string => {
    const parts = Array.from({ length: 1 + choose(3) }, () => {
      if (choose(6) === 0) return `... ${choose(3) === 0 ? '@skip(if: $yes) ' : ''}{ ${selection(kind, levels)} }`
      const fields = fieldsOf[kind].filter(([, to]) => to === undefined || levels > 0)
      const [name, to] = fields[choose(fields.length)] ?? ['__typename']
      const key = `${name === 'description' ? 'd_' : 'k'}${++keys}`
      const condition = choose(8) === 0 ? ` @include(if: $${choose(2) === 0 ? 'yes' : 'no'})` : ''
      return `${key}: ${name}${condition}${to === undefined ? '' : ` { ${selection(to, levels - 1)} }`}`
    })
    return parts.join(' ')
  }
  const roots = ['__schema', '__type(name: "Query")', '__type(name: "DateTime")', '__type(name: $name)']
  const root = roots[choose(roots.length)] ?? ''
  const used = `u: __typename @include(if: $yes) v: __typename @skip(if: $no) n: __type(name: $name) { name }`
  const inner = selection(root === '__schema' ? '__Schema' : '__Type', 4)
  return `query ($yes: Boolean!, $no: Boolean!, $name: String!) { ${used} root: ${root} { ${inner} } }`
}

describe('The answer to an introspection query', () => {
  it('is that of graphql-js, for any query', async t => {
    await using app = await startTestApp({ RATE_LIMIT_MAX: '0' })
    const compared = { equal: 0, refused: 0 }
    const compare = async (text: string, variables: Record<string, unknown>) => {
      const response = await query(app, text, { variables })
      if (response.status !== 200) {
        assert.match(response.body, /Maximum introspection depth|more than 5000 fields|more than 1000 tokens/)
        compared.refused++
        return
      }
      const { data } = executeSync({ schema, document: parse(text), variableValues: variables })
      assert.equal(response.body, JSON.stringify({ data }), text)
      compared.equal++
    }
    const numRuns = inForm(120, 5_000)
    const property = fc.asyncProperty(
      fc.infiniteStream(fc.nat()),
      fc.constantFrom('Post', 'nothing'),
      (choices, name) => compare(questionOf(choices), { yes: true, no: false, name }),
    )
    await fc.assert(property, { numRuns })
    t.diagnostic(JSON.stringify(compared))
    assert.ok(compared.equal > numRuns / 2)
    await compare(
      '{ __schema { types { name ...F name } } } fragment F on __Type { fields { name } fields { type { name } } }',
      {},
    )
  })
})

describe('An introspection query with a too large answer', () => {
  let app: Awaited<ReturnType<typeof startTestApp>>
  before(async () => {
    app = await startTestApp({ RATE_LIMIT_MAX: '0' })
  })
  after(() => app[Symbol.asyncDispose]())

  it('is refused, and 5,000 fields are allowed', async () => {
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
    it(`is refused: ${what}`, async () => {
      assertRefused(await query(app, text), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
    })
  }
})
