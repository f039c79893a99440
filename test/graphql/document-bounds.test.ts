import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { GraphQLError, Kind, parse, visit } from 'graphql'
import { Refusal } from '../../src/graphql/errors.ts'
import { checkBounds, documentBounds } from '../../src/graphql/language/limits/document.ts'
import { startTestApp } from '../support/app.ts'
import { runs } from '../support/form.ts'
import { assertRefused, dataOf, query, repeat } from '../support/graphql.ts'
import { SocketClient } from '../support/sockets.ts'
import type { Data } from './support/data.ts'
import { anyMutation, anyQuery } from './support/operations.ts'

const numRuns = runs(500, 20_000)
const noData: Data = { users: [], posts: [], comments: [] }

function verdictOf(text: string): 'within' | 'beyond' | 'no token' {
  try {
    checkBounds(text)
    return 'within'
  } catch (error) {
    if (error instanceof GraphQLError) return 'no token'
    if (error instanceof Refusal && error.code === 'DOCUMENT_TOO_LARGE') return 'beyond'
    throw error
  }
}

/** The sizes of a document, computed from the syntax tree of graphql-js. */
function measuresOf(text: string) {
  const document = parse(text)
  const measures = { tokens: document.tokenCount ?? 0, nameLength: 0, literalDepth: 0, selectionDepth: 0 }
  const now = { literalDepth: 0, selectionDepth: 0 }
  const around = (what: keyof typeof now) => ({
    enter() {
      measures[what] = Math.max(measures[what], ++now[what])
    },
    leave() {
      now[what]--
    },
  })
  const named = ({ value }: { readonly value: string }) => {
    measures.nameLength = Math.max(measures.nameLength, value.length)
  }
  visit(document, {
    [Kind.NAME]: named,
    [Kind.ENUM]: named,
    [Kind.LIST]: around('literalDepth'),
    [Kind.OBJECT]: around('literalDepth'),
    [Kind.LIST_TYPE]: around('literalDepth'),
    [Kind.SELECTION_SET]: around('selectionDepth'),
  })
  return measures
}

function isWithin(measures: ReturnType<typeof measuresOf>): boolean {
  const { tokens, nameLength, literalDepth, selectionDepth } = documentBounds
  if (measures.tokens > tokens || measures.nameLength > nameLength) return false
  return measures.literalDepth <= literalDepth && measures.selectionDepth <= selectionDepth
}

/** Sizes near a limit, more often than small ones. */
const about = (bound: number) =>
  fc.oneof(
    { weight: 5, arbitrary: fc.nat(5) },
    { weight: 1, arbitrary: fc.integer({ min: bound - 2, max: bound + 2 }) },
  )

const name = about(documentBounds.nameLength).map(length => 'n'.padEnd(length, 'x'))
const sibling = fc.constantFrom('', '1 ', '[] ', '[[1] [2]] ', '{ b: { c: 1 } } ', '"[[[[" ', '"""{{{""" ')
const literal = fc
  .tuple(about(documentBounds.literalDepth), fc.infiniteStream(fc.boolean()), sibling, name)
  .map(([depth, kinds, beside, inside]) => {
    let text = inside
    for (let level = 0; level < depth; level++) {
      text = kinds.next().value ? `[${beside}${text}]` : `{ ${beside && `s: ${beside}`} a: ${text} }`
    }
    return text
  })
const type = about(documentBounds.literalDepth).map(depth => `${'['.repeat(depth)}Int${'!]'.repeat(depth)}`)
const selections = fc.tuple(about(documentBounds.selectionDepth - 1), name, literal).map(([depth, alias, value]) => {
  let text = `{ ${alias}: a(b: ${value}, c: $v) @d(e: ${value}) ...F }`
  for (let level = 0; level < depth; level++) {
    text = level % 2 === 0 ? `{ a { b } ... @d(e: [[1]]) ${text} }` : `{ b c ${text} }`
  }
  return text
})
const anyDocument = fc
  .record({ name, variable: name, type, fallback: literal, given: literal, selections, fragment: selections })
  .map(
    parts =>
      `query ${parts.name}($${parts.variable}: ${parts.type} = ${parts.fallback} @d(e: ${parts.given})) @d(e: ${parts.given}) ${parts.selections}
       fragment F${parts.name} on T @d ${parts.fragment}`,
  )

describe('Bounds of a document', () => {
  it('are checked as the syntax tree of graphql-js shows them, for any document', t => {
    const judged = { within: 0, beyond: 0, 'no token': 0 }
    fc.assert(
      fc.property(anyDocument, text => {
        const expected = isWithin(measuresOf(text)) ? 'within' : 'beyond'
        judged[expected]++
        assert.equal(verdictOf(text), expected)
      }),
      { numRuns },
    )
    t.diagnostic(JSON.stringify(judged))
    assert.ok(Math.min(judged.within, judged.beyond) > numRuns / 20, JSON.stringify(judged))
  })

  it('accept every document of usual size', () => {
    const documents = fc.oneof(anyQuery(noData), anyMutation(noData, ['1']))
    fc.assert(
      fc.property(documents, ({ text }) => {
        const expected = isWithin(measuresOf(text))
        assert.ok(expected)
        assert.equal(verdictOf(text), 'within')
      }),
      { numRuns: numRuns / 5 },
    )
  })

  it('leave syntax errors to the parser if a document is within them', () => {
    const tokens = fc.constantFrom(
      ...'{}()[]:$@!=|&'.split(''),
      '...',
      'on',
      'query',
      'fragment',
      'a',
      '1',
      '"x"',
      '#\n',
    )
    const some = fc.array(tokens, { maxLength: 30 }).map(all => all.join(' '))
    fc.assert(
      fc.property(some, text => assert.equal(verdictOf(text), 'within')),
      { numRuns },
    )
    for (const text of ['{ mé }', '{ a(b: "', '{ a } \0', '{ a(b: 01) }'])
      assert.equal(verdictOf(text), 'no token', text)
  })
})

const nested = (open: string, inner: string, close: string, depth: number) =>
  open.repeat(depth) + inner + close.repeat(depth)
const long = (length: number) => 'x'.repeat(length)

/** Documents that are just within a bound and valid, by a size; one more is beyond it. */
const atTheBound: readonly (readonly [what: string, most: number, expected: RegExp, text: (size: number) => string])[] =
  [
    ['an alias', 128, /a name of more than 128 characters/, n => `{ ${long(n)}: __typename }`],
    ['the name of an operation', 128, /a name of more than 128/, n => `query ${long(n)} { __typename }`],
    ['the name of a fragment', 128, /a name of/, n => `{ ...${long(n)} } fragment ${long(n)} on Query { __typename }`],
    [
      'the name of a variable',
      128,
      /a name of/,
      n => `query ($${long(n)}: Int) { posts(limit: 0, offset: $${long(n)}) { id } }`,
    ],
    [
      'selections',
      128,
      /selections that nest more than 128 deep/,
      n => `${nested('{ ...', '{ __typename }', '}', n - 1)}`,
    ],
  ]

describe('A document at its bounds', () => {
  it('is executed, and a larger one is refused with DOCUMENT_TOO_LARGE, by POST and over a socket', async () => {
    await using app = await startTestApp({ RATE_LIMIT_MAX: '0' })
    using socket = await SocketClient.connect(app)
    for (const [what, most, expected, text] of atTheBound) {
      dataOf(await query(app, text(most)))
      assert.equal((await socket.ask(text(most))).errors, undefined, what)
      assertRefused(await query(app, text(most + 1)), 400, 'DOCUMENT_TOO_LARGE', expected)
      assert.equal((await socket.ask(text(most + 1))).errors?.[0]?.extensions.code, 'DOCUMENT_TOO_LARGE', what)
    }
  })

  // Nothing in the schema takes a literal that nests: the standard rules refuse what the bounds let pass.
  it('is validated if a literal or a type nests 32 deep, and refused as too large from 33 on', async () => {
    await using app = await startTestApp({ RATE_LIMIT_MAX: '0' })
    const expected = /a literal or a type that nests more than 32 deep/
    for (const text of [
      (n: number) => `{ posts(limit: ${nested('[', '1', ']', n)}) { id } }`,
      (n: number) => `{ posts(limit: ${nested('{a: ', '1', '}', n)}) { id } }`,
      (n: number) => `query ($v: ${nested('[', 'Int', ']', n)}) { posts(limit: $v) { id } }`,
      (n: number) => `query ($v: Int = ${nested('[', '1', ']', n)}) { posts(limit: $v) { id } }`,
      (n: number) => `{ __typename @include(if: ${nested('[', 'true', ']', n)}) }`,
    ]) {
      assertRefused(await query(app, text(32)), 400, 'GRAPHQL_VALIDATION_FAILED')
      assertRefused(await query(app, text(33)), 400, 'DOCUMENT_TOO_LARGE', expected)
    }
  })

  it('has names and depths counted everywhere except in strings and comments', async () => {
    await using app = await startTestApp({ RATE_LIMIT_MAX: '0' })
    dataOf(
      await query(app, `{ post(id: "${long(1000)} ${'['.repeat(1000)}") { id } } # ${'{'.repeat(1000)} ${long(1000)}`),
    )
    dataOf(await query(app, `{ ${repeat(100, n => `a${n}: post(id: """${'{'.repeat(100)}""") { id }`)} }`))
  })
})
