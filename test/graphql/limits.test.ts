import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import fc from 'fast-check'
import type { GraphQLObjectType, SelectionNode, SelectionSetNode } from 'graphql'
import {
  GraphQLIncludeDirective,
  GraphQLSkipDirective,
  getArgumentValues,
  getDirectiveValues,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  getVariableValues,
  isListType,
  isObjectType,
  Kind,
  parse,
} from 'graphql'
import { Documents, documentBounds } from '../../src/graphql/language/documents.ts'
import { depthOf } from '../../src/graphql/language/limits/depth.ts'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { newPost } from '../subscriptions/posts.ts'
import { startTestAppOn } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { runs } from '../support/form.ts'
import { assertRefused, dataOf, query, read, repeat } from '../support/graphql.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'
import { startWithPost } from './support/app.ts'
import { anyMutation, anyQuery, type Variables } from './support/operations.ts'

const schema = loadSchema()

/** An id inside this many nested fields: users, posts, authors, posts and so on. */
function nested(levels: number, within = 'user(id: 1)'): string {
  const inner = repeat(levels - 1, level => (level % 2 === 0 ? 'posts(limit: 1)' : 'author'), ' { ')
  return `${within} { ${inner}${inner && ' { '}id${' }'.repeat(levels)}`
}

describe('Limits of an operation', () => {
  const app = shared(startWithPost)

  const tooDeep = async (text: string, depth: number, asked = {}) => {
    const { message, extensions } = assertRefused(await query(app, text, asked), 400, 'DEPTH_LIMIT_EXCEEDED')
    assert.deepEqual({ ...extensions }, { code: 'DEPTH_LIMIT_EXCEEDED', depth, limit: 5 })
    assert.equal(message, `The operation nests ${depth} levels deep; 5 are allowed.`)
  }
  const likes = async () => (await read<{ post: { likes: number } }>(app, '{ post(id: 1) { likes } }')).post.likes

  describe('Depth', () => {
    it('R-LIM-5: a field inside five levels is allowed, inside six it is not', async () => {
      dataOf(await query(app, `{ ${nested(5)} }`))
      for (const levels of [6, 100]) await tooDeep(`{ ${nested(levels)} }`, levels)
    })

    it('R-LIM-5: fragments count as if they were written at their spread, named or inline', async () => {
      const deep = 'posts { author { posts { author { posts { id } } } } }'
      const post = 'fragment A on Post { author { posts(limit: 1) { id } } }'
      for (const text of [
        // The same fragment twice: once at an allowed depth, once too deep.
        `{ ...Q post(id: 1) { ...A } } ${post} fragment Q on Query { user(id: 1) { posts { author { posts { ...A } } } } }`,
        `{ ... on Query { user(id: 1) { ... { ${deep} } } } }`,
        `{ user(id: 1) { ...__schema } } fragment __schema on User { ${deep} }`,
        `query __schema { ${nested(6)} }`,
        `{ __schema: ${nested(6)} }`,
      ])
        await tooDeep(text, 6)
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

    it('introspection at the top level is exempt from the depth limit, but may not go round in circles', async () => {
      const type = 'type { ofType { ofType { ofType { ofType { name } } } } }'
      dataOf(await query(app, `{ __schema { types { fields { args { ${type} } } } } }`))
      dataOf(await query(app, `{ ...F } fragment F on Query { __type(name: "User") { fields { ${type} } } }`))
      dataOf(await query(app, getIntrospectionQuery()))
      const circular =
        '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }'
      const message = 'Maximum introspection depth exceeded'
      assertRefused(await query(app, circular), 400, 'GRAPHQL_VALIDATION_FAILED', message)
      // The exemption is only for the top level: the fields next to introspection still count.
      await tooDeep(`{ __typename __schema { queryType { name } } ${nested(6)} }`, 6)
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
    const bomb = repeat(60, n => `fragment F${n} on User { ...F${n + 1} ...F${n + 1} }`)
    await refuse(`{ users { ...F0 } } ${bomb} fragment F60 on User { id }`, Number.MAX_SAFE_INTEGER)
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

  it('size, depth, validation, variables, ranges, cost and skipped rows are checked before access', async () => {
    const invalid = 'nothing'
    const range = 'range: users(limit: -1) { id }'
    const cost = 'cost: posts(limit: 100) { comments { author { name } } }'
    const skipped = 'a: posts(offset: 100000) { id } b: posts(offset: 1) { id }'
    const identity = 'me { id }'
    const asked = { variables: { n: 'x' } }
    const header = 'query ($n: Int!)'
    const use = 'n: users(limit: $n) { id }'
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
    assertRefused(await query(app, `{ ${cost} ${skipped} ${identity} }`), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
    assertRefused(await query(app, `{ ${skipped} ${identity} }`), 400, 'BAD_USER_INPUT', /skips 100001 rows/)
    assertRefused(await query(app, `{ ${identity} }`), 401, 'UNAUTHENTICATED')
    const mutation = `mutation { ${repeat(30, n => `a${n}: createPost(title: "", content: "") { author { posts(limit: 30) { id } } }`)} }`
    assertRefused(await query(app, mutation), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
    const create = 'mutation { createPost(title: "", content: "") { id } }'
    assertRefused(await query(app, create), 401, 'UNAUTHENTICATED')
    assertRefused(await query(app, create, app.ann), 400, 'BAD_USER_INPUT')
  })

  it('only the selected operation is checked for cost and ranges', async () => {
    const text = `query Cheap { __typename } query Dear { posts(limit: 1000) { id title } } query Wrong { posts(limit: -1) { id } }`
    dataOf(await query(app, text, { operationName: 'Cheap' }))
    assertRefused(await query(app, text, { operationName: 'Dear' }), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
    assertRefused(await query(app, text, { operationName: 'Wrong' }), 400, 'BAD_USER_INPUT')
  })

  describe('An operation that skips more than 100,000 rows', () => {
    const message = (rows: number) => `The operation skips ${rows} rows; 100000 are allowed.`
    const extensions = (skipped: number) => ({ code: 'BAD_USER_INPUT', skipped, limit: 100_000 })
    const many = (count: number, offset: number) =>
      repeat(count, n => `a${n}: posts(limit: 1, offset: ${offset}) { id }`)

    it('is refused before it is executed, and 100,000 are allowed', async () => {
      dataOf(await query(app, `{ ${many(1, 100_000)} }`))
      dataOf(await query(app, `{ ${many(50, 2_000)} }`))
      dataOf(await query(app, '{ users(limit: 100) { posts(limit: 1, offset: 1000) { id } } }'))
      for (const [text, rows] of [
        [`{ ${many(51, 2_000)} }`, 102_000],
        [`{ ${many(50, 2_000)} users(offset: 1) { id } }`, 100_001],
        ['{ users(limit: 100) { posts(limit: 1, offset: 1001) { id } } }', 100_100],
        [`{ ${many(70, 100_000)} }`, 7_000_000],
      ] as const) {
        const refused = assertRefused(await query(app, text), 400, 'BAD_USER_INPUT', message(rows))
        assert.deepEqual({ ...refused.extensions }, extensions(rows))
      }
    })

    it('changes nothing if it is a mutation', async () => {
      const like = (offset: number) =>
        `mutation { ${repeat(20, n => `a${n}: likePost(id: 1) { likes author { posts(offset: ${offset}) { id } } }`)} }`
      const before = await likes()
      assertRefused(await query(app, like(5_001)), 400, 'BAD_USER_INPUT', message(100_020))
      assert.equal(await likes(), before)
      dataOf(await query(app, like(5_000)))
      assert.equal(await likes(), before + 20)
    })

    it('is refused over a socket, as a query and as a subscription', async () => {
      using socket = await SocketClient.connect(app, app.ann)
      const error = (rows: number) => [{ message: message(rows), extensions: extensions(rows) }]
      assert.deepEqual((await socket.ask(`{ ${many(2, 100_000)} }`)).errors, error(200_000))
      const subscription = (offset: number) =>
        `subscription { postAdded { id author { posts(limit: 50) { comments(offset: ${offset}) { id } } } } }`
      assert.deepEqual((await socket.ask(subscription(2_001))).errors, error(100_050))
      await socket.begin(subscription(2_000)).listening(text => newPost(socket, text))
    })
  })
})

describe('The cost of an operation', () => {
  const documents = new Documents({ schema, maxDepth: 5, suggestions: false })
  const cost = (text: string, variables = {}) => {
    const operation = documents.prepare(text).operation(undefined)
    return operation.cost(operation.coerce(variables)).cost
  }

  const costs: readonly (readonly [rule: string, text: string, cost: number, variables?: object])[] = [
    ['R-LIM-9', '{ user(id: 1) { id name email avatar createdAt __typename } }', 5 + 6],
    ['R-LIM-9', 'mutation { deletePost(id: 1) a: deletePost(id: 2) }', 2],
    ['R-LIM-10', '{ post(id: 1) { author { id name } } me { id } }', 5 + (5 + 2) + 5 + 1],
    ['R-LIM-11', '{ posts { id } }', 10],
    ['R-LIM-11', '{ users { posts { comments { id } } } }', 1000],
    ['R-LIM-11', 'query ($n: Int = 3) { posts(limit: $n) { id } }', 10, { n: null }],
    ['R-LIM-12', '{ users(limit: 3) { posts(limit: 4) { comments(limit: 5) { author { name } } } } }', 3 * 4 * 5 * 6],
    ['R-LIM-12', 'query ($n: Int = 9) { posts(limit: $n) { id } }', 7, { n: 7 }],
    ['Rows cost even where nothing of them is selected', '{ posts(limit: 50) { id @skip(if: true) } }', 50],
    ['An object costs where nothing of it is selected', '{ post(id: 1) { id @skip(if: true) } }', 5],
    ['Introspection costs nothing', getIntrospectionQuery(), 0],
    ['A list of none costs nothing', '{ posts(limit: 0) { author { email } } }', 0],
  ]

  for (const [rule, text, expected, variables] of costs) {
    it(`${rule}: ${text.slice(0, 70)} costs ${expected} with ${JSON.stringify(variables)}`, () => {
      assert.equal(cost(text, variables), expected)
    })
  }
})

test('QUERY_MAX_DEPTH and QUERY_MAX_COMPLEXITY set the limits, also to none', async () => {
  await using app = await startTestAppOn(sqlite, { QUERY_MAX_DEPTH: '0', QUERY_MAX_COMPLEXITY: '1' })
  dataOf(await query(app, '{ __typename }'))
  const deep = assertRefused(await query(app, '{ posts(limit: 0) { id } }'), 400, 'DEPTH_LIMIT_EXCEEDED')
  assert.equal(deep.extensions.limit, 0)
  const dear = await query(app, '{ a: __typename b: __typename }')
  assertRefused(dear, 400, 'COMPLEXITY_LIMIT_EXCEEDED', 'The operation costs 2; 1 is allowed.')
})

/** Cost, skipped rows and depth by their rules alone: everything inlined, nothing remembered. */
function naively(text: string, inputs: Variables): Measures {
  const { definitions } = parse(text)
  const operation = definitions.find(each => each.kind === Kind.OPERATION_DEFINITION) ?? assert.fail()
  const fragments = definitions.filter(each => each.kind === Kind.FRAGMENT_DEFINITION)
  const { variableValues: values } = getVariableValues(schema, operation.variableDefinitions ?? [], inputs)
  const isShown = (node: SelectionNode) =>
    getDirectiveValues(GraphQLSkipDirective, node, values)?.if !== true &&
    getDirectiveValues(GraphQLIncludeDirective, node, values)?.if !== false
  const sum = ({ selections }: SelectionSetNode, type: GraphQLObjectType): Measures => {
    const all = selections.map(each => {
      const measures = measured(each, type)
      return isShown(each) ? measures : { ...nothing, depth: measures.depth }
    })
    return {
      cost: all.reduce((total, { cost }) => total + cost, 0),
      skipped: all.reduce((total, { skipped }) => total + skipped, 0),
      depth: Math.max(...all.map(({ depth }) => depth)),
    }
  }
  const measured = (node: SelectionNode, type: GraphQLObjectType): Measures => {
    if (node.kind === Kind.INLINE_FRAGMENT) return sum(node.selectionSet, type)
    const { value: name } = node.name
    if (node.kind === Kind.FRAGMENT_SPREAD)
      return sum((fragments.find(each => each.name.value === name) ?? assert.fail()).selectionSet, type)
    if (name === '__schema' || name === '__type') return nothing
    if (node.selectionSet === undefined) return { ...nothing, cost: 1 }
    const field = type.getFields()[name] ?? assert.fail(name)
    const named = getNamedType(field.type)
    const { cost, skipped, depth } = isObjectType(named) ? sum(node.selectionSet, named) : assert.fail()
    if (!isListType(getNullableType(field.type))) return { cost: 5 + cost, skipped, depth: depth + 1 }
    const { limit, offset } = getArgumentValues(field, node, values)
    const most = Number(limit ?? 10)
    if (most === 0) return { ...nothing, depth: depth + 1 }
    return { cost: most * Math.max(1, cost), skipped: Number(offset ?? 0) + most * skipped, depth: depth + 1 }
  }
  return sum(operation.selectionSet, schema.getRootType(operation.operation) ?? assert.fail())
}

const nothing = { cost: 0, skipped: 0, depth: 0 }
type Measures = typeof nothing

test('R-LIM-9, R-LIM-10, R-LIM-11, R-LIM-12: cost, skipped rows and depth are those of a naive calculation, for any operation', t => {
  const documents = new Documents({ schema, maxDepth: 5, suggestions: false })
  const noData = { users: [], posts: [], comments: [] }
  const most = { ...nothing }
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
