import assert from 'node:assert/strict'
import { after, before, describe, it, test } from 'node:test'
import fc from 'fast-check'
import { executeSync, type GraphQLSchema, getIntrospectionQuery, parse } from 'graphql'
import { anonymous } from '../../src/core/actor.ts'
import { Documents } from '../../src/graphql/language/documents.ts'
import { Introspection, introspectionBound } from '../../src/graphql/language/introspection.ts'
import { PlanSize } from '../../src/graphql/language/limits/plan-size.ts'
import { valuesOf } from '../../src/graphql/language/plan.ts'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { planQuery } from '../../src/graphql/query.ts'
import { startTestApp } from '../support/app.ts'
import { inForm, notInQuick } from '../support/form.ts'
import { assertRefused, dataOf, query, repeat } from '../support/graphql.ts'
import { growthOf, megabytes } from '../support/memory.ts'
import { SocketClient } from '../support/sockets.ts'

const schema = loadSchema()

function sizeOf(text: string, inputs = {}): number {
  const operation = new Documents({ schema, maxDepth: 5, suggestions: false }).prepare(text).operation(undefined)
  return operation.cost(operation.coerce(inputs)).introspection
}

/** The same size, counted in the answer itself. */
function sizeOfAnswer(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + sizeOfAnswer(item), 0)
  if (typeof value !== 'object' || value === null) return 0
  return Object.entries(value).reduce((sum, [key, inner]) => {
    const text = key.startsWith('d_') && typeof inner === 'string' ? Math.floor(inner.length / 100) : 0
    return sum + 1 + text + sizeOfAnswer(inner)
  }, 0)
}

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
    it(`gets the same answer as from graphql-js, ${what}, and is far below the limit`, async () => {
      await using app = await startTestApp()
      const { data } = executeSync({ schema, document: parse(text) })
      for (let time = 0; time < 2; time++)
        assert.deepEqual(dataOf(await query(app, text)), JSON.parse(JSON.stringify(data)))
      assert.ok(sizeOf(text) * 2 < introspectionBound, `${sizeOf(text)}`)
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

describe('The computed size of an introspection answer', () => {
  /**
   * Returns whether the size could be compared: the standard rules refuse some queries. `others`: fields at the top level
   * that are not introspection.
   */
  function compare(text: string, variables = {}, others = 0): boolean {
    const { data, errors } = executeSync({ schema, document: parse(text), variableValues: variables })
    assert.equal(errors, undefined)
    let size: number
    try {
      size = sizeOf(text, variables)
    } catch (error) {
      assert.match(String(error), /Maximum introspection depth/)
      return false
    }
    assert.equal(size, sizeOfAnswer(data) - others)
    return true
  }

  it('is the size of the real answer, for any query', t => {
    let compared = 0
    const property = fc.property(fc.infiniteStream(fc.nat()), fc.constantFrom('Post', 'nothing'), (choices, name) => {
      if (compare(questionOf(choices), { yes: true, no: false, name }, 2)) compared++
    })
    const numRuns = inForm(120, 5_000)
    fc.assert(property, { numRuns })
    t.diagnostic(`${compared} compared`)
    assert.ok(compared > numRuns / 2)
  })

  it('is the size of the real answer, for a query of the whole schema', () => {
    const type = 'type { name kind ofType { name kind } }'
    const fields = `fields { name d_0: description ${type} args { name defaultValue ${type} } }`
    const text = `{ __schema { types { name kind d_0: description ${fields} enumValues { name } } directives { name } } }`
    assert.ok(compare(text))
    assert.ok(sizeOf(text) > 1000)
  })

  it('counts fragments at every spread, and descriptions by their length', () => {
    const name = '__type(name: "User") { ...F ...F }'
    assert.equal(sizeOf(`{ a: ${name} b: ${name} } fragment F on __Type { name kind }`), 2 * (1 + 4))
    const description = schema.getType('__Type')?.description ?? ''
    assert.ok(description.length > 300)
    assert.equal(sizeOf('{ __type(name: "__Type") { description } }'), 2 + Math.floor(description.length / 100))
  })
})

describe('An introspection query with a too large answer', () => {
  let app: Awaited<ReturnType<typeof startTestApp>>
  before(async () => {
    app = await startTestApp({ RATE_LIMIT_MAX: '0' })
  })
  after(() => app[Symbol.asyncDispose]())

  it('is refused with its size, and 5,000 is allowed', async () => {
    const ten = repeat(10, n => `a${n}: __type(name: "User") { ...F }`)
    const fragment = `fragment F on __Type { ${repeat(499, n => `n${n}: name`)} }`
    dataOf(await query(app, `{ ${ten} } ${fragment}`))
    const beyond = `{ ${ten} __type(name: "nobody") { name } } ${fragment}`
    const message = 'The operation costs 5001; 5000 is allowed.'
    const { extensions } = assertRefused(await query(app, beyond), 400, 'COMPLEXITY_LIMIT_EXCEEDED', message)
    assert.deepEqual({ ...extensions }, { code: 'COMPLEXITY_LIMIT_EXCEEDED', cost: 5001, limit: 5000 })
    using socket = await SocketClient.connect(app)
    assert.equal((await socket.ask(beyond)).errors?.[0]?.message, message)
  })

  const large: Readonly<Record<string, string>> = {
    'the same scalar of every type': `{ __schema { ${repeat(33, n => `a${n}: types { ...F }`)} } } fragment F on __Type { ${repeat(560, n => `k${n}: kind`)} }`,
    'long descriptions': `{ ${repeat(20, n => `a${n}: __type(name: "__Type") { ...D }`)} } fragment D on __Type { ${repeat(45, n => `d${n}: description`)} }`,
    'lists within lists': `{ __schema { ${repeat(40, n => `a${n}: types { fields { args { type { ...T } } type { ...T } } }`)} } } fragment T on __Type { kind name ofType { kind name ofType { kind name } } }`,
  }
  for (const [what, text] of Object.entries(large)) {
    it(`is refused: ${what}`, async () => {
      assertRefused(await query(app, text), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
    })
  }
})

/** Executes an operation as the service does, as often as it is called. */
function asked(introspection: Introspection, text: string) {
  const operation = new Documents({ schema, maxDepth: 5, suggestions: false }).prepare(text).operation(undefined)
  const plan = planQuery(introspection, operation, operation.coerce({}), new PlanSize())
  return (inputs = {}) => valuesOf(plan, { variables: operation.coerce(inputs), actor: anonymous })[0]
}

test('an introspection answer is computed once for the same variables, and again for others', () => {
  let lookedUp = 0
  const counting: GraphQLSchema = Object.create(schema, {
    getTypeMap: {
      value() {
        lookedUp++
        return schema.getTypeMap()
      },
    },
  })
  const introspection = new Introspection(counting)
  const types = asked(
    introspection,
    'query ($all: Boolean = true) { __schema { types { name fields @include(if: $all) { name } } } }',
  )
  const first = types()
  const perAnswer = lookedUp
  assert.ok(perAnswer > 0)
  assert.equal(types(), first)
  assert.equal(types({ all: true }), first)
  assert.equal(lookedUp, perAnswer)
  const short = types({ all: false })
  assert.ok(String(short).length < String(first).length)
  assert.equal(lookedUp, 2 * perAnswer)
  assert.deepEqual([types(), types({ all: false })], [first, short])
  assert.equal(lookedUp, 2 * perAnswer)
  const others = asked(introspection, '{ __schema { types { kind } } }')
  assert.notEqual(others(), first)
})

test('a stream of introspection queries takes bounded memory', { skip: notInQuick }, t => {
  const introspection = new Introspection(schema)
  const grown = growthOf(() => {
    for (let count = 0; count < 150; count++) {
      const aliases = repeat(240, n => `${'x'.repeat(100)}${n}: description`)
      asked(introspection, `{ a${count}: __schema { types { ...F } } } fragment F on __Type { ${aliases} }`)()
    }
  })
  t.diagnostic(`150 answers took ${megabytes(grown)}`)
  assert.ok(grown < 24 * 1024 * 1024, megabytes(grown))
  assert.ok(asked(introspection, '{ __schema { types { name } } }')())
})

test('the variables of an operation are serialized once for all its introspection fields', t => {
  const questions = repeat(150, n => `a${n}: __type(name: $name) { kind }`)
  const operation = new Documents({ schema, maxDepth: 5, suggestions: false })
    .prepare(`query ($name: String!) { ${questions} }`)
    .operation(undefined)
  const plan = planQuery(new Introspection(schema), operation, operation.coerce({ name: 'Post' }), new PlanSize())
  for (const name of ['User', 'x'.repeat(100_000)]) {
    const variables = operation.coerce({ name })
    const stringify = t.mock.method(JSON, 'stringify')
    valuesOf(plan, { variables, actor: anonymous })
    const long = stringify.mock.calls.filter(({ arguments: [value] }) => value === variables)
    assert.equal(long.length, name === 'User' ? 1 : 0)
    stringify.mock.restore()
  }
})
