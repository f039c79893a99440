import assert from 'node:assert/strict'
import { before, describe, it, test } from 'node:test'
import fc from 'fast-check'
import type { DefinitionNode, FieldNode, GraphQLObjectType, SelectionNode, SelectionSetNode, ValueNode } from 'graphql'
import { getIntrospectionQuery, getNamedType, getNullableType, isListType, isObjectType, Kind, parse } from 'graphql'
import { Documents, documentBounds } from '../../src/graphql/language/documents.ts'
import { depthOf } from '../../src/graphql/language/limits/depth.ts'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { startTestAppOn } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { runs } from '../support/form.ts'
import { assertRefused, dataOf, get, query, read, repeat } from '../support/graphql.ts'
import { createMember, type UserBody } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import type { Data } from './support/data.ts'
import { anyMutation, anyQuery, type Variables } from './support/operations.ts'

type Member = UserBody & { readonly token: string }

/** An id inside this many nested fields: users, posts, authors, posts and so on. */
function nested(levels: number, within = 'user(id: 1)'): string {
  const inner = repeat(levels - 1, level => (level % 2 === 0 ? 'posts(limit: 1)' : 'author'), ' { ')
  return `${within} { ${inner}${inner && ' { '}id${' }'.repeat(levels)}`
}

describe('Limits of an operation', () => {
  const app = shared(() => startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0' }))
  let ann: Member
  before(async () => {
    ann = await createMember(app)
    await read(app, 'mutation { createPost(title: "T", content: "C") { id } }', ann)
  })

  const tooDeep = async (text: string, depth: number, asked = {}) => {
    const { message, extensions } = assertRefused(await query(app, text, asked), 400, 'DEPTH_LIMIT_EXCEEDED')
    assert.deepEqual({ ...extensions }, { code: 'DEPTH_LIMIT_EXCEEDED', depth, limit: 5 })
    assert.equal(message, `The operation nests ${depth} levels deep; 5 are allowed.`)
  }
  const likes = async () => (await read<{ post: { likes: number } }>(app, '{ post(id: 1) { likes } }')).post.likes

  describe('Depth', () => {
    it('R-LIM-5: a field inside five levels is allowed, inside six it is not', async () => {
      const text = '{ user(id: 1) { posts(limit: 1) { comments(limit: 1) { author { posts(limit: 1) { title } } } } } }'
      assert.deepEqual(await read(app, text), { user: { posts: [{ comments: [] }] } })
      await tooDeep(text.replace('{ title }', '{ author { name } }'), 6)
      for (const levels of [1, 2, 3, 4, 5]) dataOf(await query(app, `{ ${nested(levels)} }`))
      for (const levels of [6, 7, 100]) await tooDeep(`{ ${nested(levels)} }`, levels)
    })

    it('R-LIM-5: fragments count as if they were written at their spread, named or inline', async () => {
      const post = 'author { posts(limit: 1) { id } }' // two levels deeper than its place
      const user = 'posts(limit: 1) { author { id } }'
      for (const [levels, text] of [
        [5, `{ user(id: 1) { posts { ...A } } } fragment A on Post { author { ...B } } fragment B on User { ${user} }`],
        [
          6,
          `{ user(id: 1) { posts { ...A } } } fragment A on Post { author { ...B } } fragment B on User { posts { ${post} } }`,
        ],
        [
          5,
          `{ ... { ... on Query { user(id: 1) { ... { posts(limit: 1) { ... on Post { author { ${user} } } } } } } } }`,
        ],
        [
          6,
          `{ ... { ... on Query { user(id: 1) { ... { posts { ... on Post { author { posts { ${post} } } } } } } } } }`,
        ],
        // The same fragment twice: once at an allowed depth, once too deep.
        [
          6,
          `{ ...Q post(id: 1) { ...A } } fragment A on Post { ${post} } fragment Q on Query { user(id: 1) { posts { author { posts { ...A } } } } }`,
        ],
        [
          6,
          '{ user(id: 1) { ...__schema } } fragment __schema on User { posts { author { posts { author { posts { id } } } } } }',
        ],
        [6, `query __schema { ${nested(6)} }`],
        [6, `{ __schema: ${nested(6)} }`],
      ] as const) {
        if (levels > 5) await tooDeep(text, levels)
        else dataOf(await query(app, text))
      }
    })

    it('R-LIM-5: every operation of the document counts, also unselected ones, whatever its directives are', async () => {
      const text = `query A { __typename } query B { ${nested(6)} }`
      for (const operationName of ['A', 'B', undefined]) await tooDeep(text, 6, { operationName })
      await tooDeep(`{ ${nested(6, 'user(id: 1) @skip(if: true)')} }`, 6)
      await tooDeep(`{ ... @include(if: false) { ${nested(6)} } }`, 6)
      await tooDeep(`mutation { likePost(id: 1) { ${nested(5, 'author')} } }`, 6)
      await tooDeep(`subscription { postAdded { ${nested(5, 'author')} } }`, 6)
    })

    it('R-LIM-6: a too deep operation is not executed', async () => {
      const before = await likes()
      await tooDeep(`mutation { one: likePost(id: 1) { id } other: likePost(id: 1) { ${nested(5, 'author')} } }`, 6)
      assert.equal(await likes(), before)
    })

    it('introspection at the top level is exempt from the depth limit, and has its own limit', async () => {
      const type = 'type { ofType { ofType { ofType { ofType { name } } } } }'
      dataOf(await query(app, `{ __schema { types { fields { args { ${type} } } } } }`))
      dataOf(await query(app, `{ ...F } fragment F on Query { __type(name: "User") { fields { ${type} } } }`))
      dataOf(await query(app, getIntrospectionQuery()))
      const circular =
        '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }'
      assertRefused(
        await query(app, circular),
        400,
        'GRAPHQL_VALIDATION_FAILED',
        'Maximum introspection depth exceeded',
      )
      // The exemption is only for the top level: the fields next to introspection still count.
      await tooDeep(`{ __typename __schema { queryType { name } } ${nested(6)} }`, 6)
      const wide = `{ __schema { ${repeat(40, n => `a${n}: types { fields { args { type { fields { name } } } } }`)} } }`
      assertRefused(await query(app, wide), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
    })
  })

  it('R-LIM-7, R-LIM-8, R-LIM-13: a cost of 1000 is allowed, and an operation of 1001 is not executed', async () => {
    const before = await likes()
    dataOf(await query(app, '{ posts(limit: 1000) { id } }'))
    dataOf(await query(app, '{ users(limit: 100) { posts { id } } }'))
    const refuse = async (text: string, cost: number, variables = {}) => {
      const { extensions } = assertRefused(await query(app, text, { variables }), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
      assert.deepEqual({ ...extensions }, { code: 'COMPLEXITY_LIMIT_EXCEEDED', cost, limit: 1000 })
    }
    await refuse('{ posts(limit: 1000) { id } __typename }', 1001)
    await refuse('{ posts(limit: 100) { comments { author { name } } } }', 6000)
    const text = 'query ($n: Int!) { posts(limit: $n) { id } a: __typename b: __typename }'
    dataOf(await query(app, text, { variables: { n: 998 } }))
    await refuse(text, 1001, { n: 999 })
    const like = (count: number) =>
      `mutation { ${repeat(count, n => `a${n}: likePost(id: 1) { likes title author { posts(limit: 30) { id } } }`)} }`
    await refuse(like(24), 24 * 42)
    assert.equal(await likes(), before)
    dataOf(await query(app, like(23)))
    assert.equal(await likes(), before + 23)
  })

  describe('Order of checks', () => {
    it('size, depth, validation, variables, ranges and cost are checked before access', async () => {
      const wrong = {
        invalid: 'nothing',
        range: 'range: users(limit: -1) { id }',
        cost: 'cost: posts(limit: 100) { comments { author { name } } }',
        identity: 'me { id }',
      }
      const asked = { variables: { n: 'x' } }
      const header = 'query ($n: Int!)'
      const use = 'n: users(limit: $n) { id }'
      const { invalid, range, cost, identity } = wrong
      const all = `${header} { ${use} ${invalid} ${range} ${cost} ${identity} ${nested(6)} }`
      const large = `${all} #${'x'.repeat(documentBounds.bytes)}`
      const many = `${all} ${repeat(400, n => `query Q${n} { __typename }`)}`
      for (const text of [large, many]) assertRefused(await query(app, text, asked), 400, 'DOCUMENT_TOO_LARGE')
      await tooDeep(all, 6, asked)
      const rules = `${header} { ${use} ${invalid} ${range} ${cost} ${identity} }`
      assertRefused(await query(app, rules, asked), 400, 'GRAPHQL_VALIDATION_FAILED', /"nothing"/)
      const variables = `${header} { ${use} ${range} ${cost} ${identity} }`
      assertRefused(await query(app, variables, asked), 400, 'BAD_USER_INPUT', /^Variable "\$n"/)
      const ranges = `{ ${cost} ${range} ${identity} }`
      assertRefused(await query(app, ranges), 400, 'BAD_USER_INPUT', /^limit must be/)
      assertRefused(await query(app, `{ ${cost} ${identity} }`), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
      assertRefused(await query(app, `{ ${identity} }`), 401, 'UNAUTHENTICATED')
      const mutation = `mutation { ${repeat(30, n => `a${n}: createPost(title: "", content: "") { author { posts(limit: 30) { id } } }`)} }`
      assertRefused(await query(app, mutation), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
      assertRefused(await query(app, 'mutation { createPost(title: "", content: "") { id } }'), 401, 'UNAUTHENTICATED')
      assertRefused(
        await query(app, 'mutation { createPost(title: "", content: "") { id } }', ann),
        400,
        'BAD_USER_INPUT',
      )
    })

    it('only the selected operation is checked for cost and ranges, by POST and by GET', async () => {
      const text = `query Cheap { __typename } query Dear { posts(limit: 1000) { id title } } query Wrong { posts(limit: -1) { id } }`
      for (const ask of [
        (operationName: string) => query(app, text, { operationName }),
        (operationName: string) => get(app, { query: text, operationName }),
      ]) {
        dataOf(await ask('Cheap'))
        assertRefused(await ask('Dear'), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
        assertRefused(await ask('Wrong'), 400, 'BAD_USER_INPUT')
      }
    })
  })

  describe('Size of a document', () => {
    const withSize = (bytes: number, filler = 'x') => {
      const text = '{ __typename } #'
      return text + filler.repeat((bytes - text.length) / Buffer.byteLength(filler))
    }

    it('64 KiB are allowed and one byte more is not', async () => {
      dataOf(await query(app, withSize(65_536)))
      dataOf(await query(app, withSize(65_536, 'é')))
      const text = 'The document is larger than 65536 bytes.'
      assertRefused(await query(app, withSize(65_537)), 400, 'DOCUMENT_TOO_LARGE', text)
      assertRefused(await query(app, withSize(65_538, 'é')), 400, 'DOCUMENT_TOO_LARGE', text)
      assertRefused(await query(app, ','.repeat(1_000_000)), 400, 'DOCUMENT_TOO_LARGE', text)
    })

    it('1,000 tokens are allowed and one more is not, without comments and commas', async () => {
      const withTokens = (count: number) =>
        `{ ${repeat(332, n => `a${n}: __typename`, '\n, # and\n')} ${repeat(count - 998, () => '__typename')} }`
      dataOf(await query(app, withTokens(1000)))
      const text = 'The document has more than 1000 tokens.'
      assertRefused(await query(app, withTokens(1001)), 400, 'DOCUMENT_TOO_LARGE', text)
      assertRefused(await query(app, `${withTokens(1001)} this is no GraphQL`), 400, 'DOCUMENT_TOO_LARGE', text)
    })

    it('a document within the limits is never called too large because of its text', async () => {
      const refusal = await query(app, '{ "tokens. Parsing aborted" }')
      assertRefused(refusal, 400, 'GRAPHQL_PARSE_FAILED', /^Syntax Error: Expected Name, found String/)
    })
  })
})

describe('The cost of an operation', () => {
  const app = shared(() => startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0', QUERY_MAX_COMPLEXITY: '1' }))

  /** The reported cost of an operation. Here the limit is 1, so all others are refused. */
  const cost = async (text: string, variables = {}) => {
    const response = await query(app, text, { variables })
    if (response.status === 200) return dataOf(response)
    const { message, extensions } = assertRefused(response, 400, 'COMPLEXITY_LIMIT_EXCEEDED')
    assert.equal(message, `The operation costs ${extensions.cost}; 1 is allowed.`)
    assert.deepEqual({ ...extensions }, { code: 'COMPLEXITY_LIMIT_EXCEEDED', cost: extensions.cost, limit: 1 })
    return extensions.cost
  }

  const costs: readonly (readonly [rule: string, text: string, cost: number, variables?: object])[] = [
    ['R-LIM-9', '{ user(id: 1) { id name email avatar createdAt __typename } }', 5 + 6],
    ['R-LIM-9', 'mutation { deletePost(id: 1) a: deletePost(id: 2) }', 2],
    ['R-LIM-10', '{ post(id: 1) { author { id name } } me { id } }', 5 + (5 + 2) + 5 + 1],
    [
      'R-LIM-10',
      'mutation { likePost(id: 1) { likes } addComment(postId: 1, text: "x") { author { id } } }',
      6 + 5 + 6,
    ],
    ['R-LIM-11', '{ posts { id } }', 10],
    ['R-LIM-11', '{ users { posts { comments { id } } } }', 1000],
    ['R-LIM-11', '{ posts(limit: null) { id title } }', 20],
    ['R-LIM-11', 'query ($n: Int) { posts(limit: $n) { id } }', 10, { n: null }],
    ['R-LIM-11', 'query ($n: Int = 3) { posts(limit: $n) { id } }', 10, { n: null }],
    ['R-LIM-12', '{ posts(limit: 7) { id title } }', 7 * 2],
    ['R-LIM-12', '{ users(limit: 3) { posts(limit: 4) { comments(limit: 5) { author { name } } } } }', 3 * 4 * 5 * 6],
    ['R-LIM-12', 'query ($n: Int! = 9) { posts(limit: $n) { id } }', 9],
    ['R-LIM-12', 'query ($n: Int = 9) { posts(limit: $n) { id } }', 7, { n: 7 }],
    ['R-LIM-13', '{ posts(limit: 100) { comments { author { name } } } }', 100 * 10 * (5 + 1)],
    ['Aliases count each time', '{ a: post(id: 1) { id } b: post(id: 1) { id } }', 12],
    [
      'Fragments count each time',
      '{ a: post(id: 1) { ...F } b: post(id: 1) { ...F ...F } } fragment F on Post { id likes }',
      7 + 9,
    ],
    [
      '@skip and @include come first',
      'query ($a: Boolean!, $b: Boolean = true) { posts @include(if: $a) { id } ...Q @skip(if: $b) me { id ... @include(if: $b) { name } } } fragment Q on Query { posts { id } }',
      7,
      { a: false },
    ],
    ['Rows cost even where nothing of them is selected', '{ posts(limit: 50) { id @skip(if: true) } }', 50],
    ['An object costs where nothing of it is selected', '{ post(id: 1) { id @skip(if: true) } }', 5],
    ['Introspection is exempt', '{ __schema { types { name } } posts(limit: 2) { id } }', 2],
  ]

  for (const [rule, text, expected, variables] of costs) {
    it(`${rule}: ${text.length > 70 ? `${text.slice(0, 70)}…` : text} costs ${expected}${variables ? ` with ${JSON.stringify(variables)}` : ''}`, async () => {
      assert.equal(await cost(text, variables), expected)
    })
  }

  it('introspection alone, or a list with limit 0, costs nothing', async () => {
    await cost(getIntrospectionQuery())
    assert.deepEqual(await cost('{ posts(limit: 0) { author { email } } }'), { posts: [] })
    assert.deepEqual(await cost('{ __typename }'), { __typename: 'Query' })
  })

  it('a cost above the largest exact integer is reported as that integer', async () => {
    const bomb = `{ users { ...F0 } } ${repeat(60, n => `fragment F${n} on User { ...F${n + 1} ...F${n + 1} }`)} fragment F60 on User { id }`
    assert.equal(await cost(bomb), Number.MAX_SAFE_INTEGER)
  })
})

test('QUERY_MAX_DEPTH and QUERY_MAX_COMPLEXITY set the limits', async () => {
  await using app = await startTestAppOn(sqlite, {
    QUERY_MAX_DEPTH: '7',
    QUERY_MAX_COMPLEXITY: '5000',
    RATE_LIMIT_MAX: '0',
  })
  dataOf(await query(app, `{ ${nested(7)} }`))
  const { extensions } = assertRefused(await query(app, `{ ${nested(8)} }`), 400, 'DEPTH_LIMIT_EXCEEDED')
  assert.equal(extensions.limit, 7)
  dataOf(await query(app, '{ posts(limit: 1000) { id title likes content publishedAt } }'))
  assertRefused(
    await query(app, '{ posts(limit: 1000) { id title likes content publishedAt __typename } }'),
    400,
    'COMPLEXITY_LIMIT_EXCEEDED',
  )
  await using flat = await startTestAppOn(sqlite, { QUERY_MAX_DEPTH: '0' })
  dataOf(await query(flat, '{ __typename }'))
  assertRefused(await query(flat, '{ posts { id } }'), 400, 'DEPTH_LIMIT_EXCEEDED')
})

/** Cost, skipped rows and depth by their rules alone: everything inlined, nothing remembered. */
function naively(text: string, variables: Variables) {
  const { definitions } = parse(text)
  const operation = definitions.find(each => each.kind === Kind.OPERATION_DEFINITION) ?? assert.fail()
  const defaults = operation.variableDefinitions?.map(each => [each.variable.name.value, literal(each.defaultValue)])
  const values = new Map<string, unknown>([...(defaults ?? []), ...Object.entries(variables)] as [string, unknown][])
  const given = (node: ValueNode | undefined) =>
    node?.kind === Kind.VARIABLE ? values.get(node.name.value) : literal(node)
  const valueIn = (args: FieldNode['arguments'], name: string) =>
    given(args?.find(each => each.name.value === name)?.value)
  const isShown = ({ directives = [] }: SelectionNode) =>
    directives.every(each => valueIn(each.arguments, 'if') === (each.name.value === 'include'))

  const sum = (set: SelectionSetNode, type: GraphQLObjectType): Measures => {
    const all = set.selections.map(each => {
      const measures = each.kind === Kind.FIELD ? field(each, type) : inner(each, type)
      return isShown(each) ? measures : { ...nothing, depth: measures.depth }
    })
    return {
      cost: all.reduce((total, { cost }) => total + cost, 0),
      skipped: all.reduce((total, { skipped }) => total + skipped, 0),
      depth: Math.max(...all.map(({ depth }) => depth)),
    }
  }
  const inner = (node: Exclude<SelectionNode, FieldNode>, type: GraphQLObjectType) => {
    if (node.kind === Kind.INLINE_FRAGMENT) return sum(node.selectionSet, type)
    const isNamed = (each: DefinitionNode) =>
      each.kind === Kind.FRAGMENT_DEFINITION && each.name.value === node.name.value
    const fragment = definitions.find(isNamed)
    return fragment?.kind === Kind.FRAGMENT_DEFINITION ? sum(fragment.selectionSet, type) : assert.fail()
  }
  const field = ({ name, arguments: args, selectionSet }: FieldNode, type: GraphQLObjectType): Measures => {
    if (name.value === '__schema' || name.value === '__type') return nothing
    if (selectionSet === undefined) return { ...nothing, cost: 1 }
    const { type: returned } = type.getFields()[name.value] ?? assert.fail(name.value)
    const named = getNamedType(returned)
    const { cost, skipped, depth } = isObjectType(named) ? sum(selectionSet, named) : assert.fail()
    if (!isListType(getNullableType(returned))) return { cost: 5 + cost, skipped, depth: depth + 1 }
    const limit = Number(valueIn(args, 'limit') ?? 10)
    const offset = Number(valueIn(args, 'offset') ?? 0)
    if (limit === 0) return { ...nothing, depth: depth + 1 }
    return { cost: limit * Math.max(1, cost), skipped: offset + limit * skipped, depth: depth + 1 }
  }
  return sum(operation.selectionSet, schema.getRootType(operation.operation) ?? assert.fail())
}

interface Measures {
  readonly cost: number
  readonly skipped: number
  readonly depth: number
}

const nothing: Measures = { cost: 0, skipped: 0, depth: 0 }

function literal(node: ValueNode | undefined): unknown {
  return node !== undefined && 'value' in node ? node.value : undefined
}

const schema = loadSchema()
const noData: Data = { users: [], posts: [], comments: [] }

test('R-LIM-9, R-LIM-10, R-LIM-11, R-LIM-12: cost, skipped rows and depth are those of a naive calculation, for any operation', t => {
  const documents = new Documents({ schema, maxDepth: 5, suggestions: false })
  const most = { cost: 0, skipped: 0, depth: 0 }
  const property = fc.property(fc.oneof(anyQuery(noData), anyMutation(noData, ['1'])), ({ text, variables }) => {
    const operation = documents.prepare(text).operation(undefined)
    for (const set of variables) {
      const expected = naively(text, set)
      const { cost, skipped } = operation.cost(operation.coerce(set))
      assert.deepEqual({ cost, skipped, depth: depthOf(parse(text)) }, expected, `${text} with ${JSON.stringify(set)}`)
      for (const name of ['cost', 'skipped', 'depth'] as const) most[name] = Math.max(most[name], expected[name])
    }
  })
  fc.assert(property, { numRuns: runs(100, 5_000) })
  t.diagnostic(JSON.stringify(most))
  assert.ok(most.cost > 100 && most.skipped > 10 && most.depth >= 4, JSON.stringify(most))
})
