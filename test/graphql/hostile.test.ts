import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it, type TestContext } from 'node:test'
import { Lexer, Source, TokenKind } from 'graphql'
import { documentBounds } from '../../src/graphql/language/documents.ts'
import { type Asked, assertRefused, dataOf, query, read, repeat } from '../support/graphql.ts'
import type { RawResponse } from '../support/http.ts'
import { type DuetProcess, serveDuet } from '../support/process.ts'

/** A document, or a function that makes one of a given size: then the largest one within the limits is used. */
type Made = string | ((size: number) => string)
/** Expected are data, or the code of a refusal. */
type Document = readonly [name: string, made: Made, expected: string, asked?: Asked]

const use = '{ me { ...F0 } }'
const nest = (size: number, open: string, inner: string, close: string) =>
  open.repeat(size) + inner + close.repeat(size)

/** Fragments that each spread the next one several times. With all spreads inlined they would be huge. */
function bomb(size: number, times: number, type = 'User', leaf = 'id'): string {
  const spread = (n: number) => repeat(times, () => `...F${n + 1}`)
  return `${repeat(size, n => `fragment F${n} on ${type} { ${spread(n)} }`)} fragment F${size} on ${type} { ${leaf} }`
}

const people = [
  ['User', 'posts'],
  ['Post', 'author'],
] as const

const invalid = 'GRAPHQL_VALIDATION_FAILED'
const unparsable = 'GRAPHQL_PARSE_FAILED'
const tooCostly = 'COMPLEXITY_LIMIT_EXCEEDED'
const wrongInput = 'BAD_USER_INPUT'

const documents: readonly Document[] = [
  ['a circle of fragments', n => `${use} ${repeat(n, i => `fragment F${i} on User{...F${(i + 1) % n}}`)}`, invalid],
  ['a chain of fragments', n => `${use.replace('me', 'user(id: 1)')} ${bomb(n, 1)}`, 'data'],
  ['a bomb of fragments, by twos', n => `${use} ${bomb(n, 2)}`, tooCostly],
  ['a bomb of fragments in a list of none', n => `{ users(limit: 0) { ...F0 } } ${bomb(n, 3)}`, 'data'],
  ['a bomb of introspection', n => `{ __schema { types { ...F0 } } } ${bomb(n, 2, '__Type', 'name')}`, 'data'],
  [
    'one fragment, spread over and over',
    n => `{ user(id: 1) { ${repeat(n, () => '...F')} } } fragment F on User { id }`,
    'data',
  ],
  ['inline fragments within each other', n => `{ user(id: 1) { ${nest(n, '...{', 'id', '}')} } }`, 'data'],
  // Fields.
  ['as many names as fit', n => `{ ${repeat(n, () => '__typename')} }`, invalid],
  ['as many lists as fit', n => `{ ${repeat(n, i => `a${i}:posts(limit:1){id}`)} }`, 'data'],
  ['as many conflicts as fit', n => `{ me { ${repeat(n, i => `a:${i % 2 ? 'id' : 'name'}`)} } }`, invalid],
  [
    'the same fields over and over, nested',
    n => `{ ${repeat(n, () => 'me{posts{comments{author{id}}}}')} }`,
    tooCostly,
  ],
  ['unknown fields that are nearly known', n => `{ ${repeat(n, i => `post${i}`)} }`, invalid],
  ['aliases of 128 letters', `{ posts(limit: 1) { ${repeat(320, n => `${'a'.repeat(125)}${100 + n}: id`)} } }`, 'data'],
  ['fields within each other', n => `{ me ${nest(n, '{ posts { author ', '{ id }', '}}')} }`, 'DEPTH_LIMIT_EXCEEDED'],
  ['fragments in many combinations that nobody uses', `{ __typename } ${layers(15, people)}`, invalid],
  [
    'fragments in many combinations, introspected',
    `{ __type(name: "User") { ...Z0 } } ${layers(22, [['__Type', 'ofType']])}`,
    'data',
  ],
  // Operations.
  [
    'operations that share a fragment of many fields',
    n => `${repeat(n, i => `query Q${i}{...F}`)} fragment F on Query{${repeat(300, () => '__typename')}}`,
    'data',
    { operationName: 'Q0' },
  ],
  ['likes without end', n => `mutation { ${repeat(n, i => `a${i}:likePost(id:1){id}`)} }`, 'data'],
  // Arguments, variables, directives.
  [
    'lists within lists as an argument, as deep as may be',
    n => `{ ${repeat(n, i => `a${i}: posts(limit: ${nest(32, '[', '1', ']')}) { id }`)} }`,
    invalid,
  ],
  ['an object of many keys as an argument', n => `{ posts(limit: {${repeat(n, i => `a${i}:1`)}}) { id } }`, invalid],
  [
    'as many variables as fit',
    n => `query(${repeat(n, i => `$v${i}:Int=1`)}){${repeat(n, i => `a${i}:posts(limit:$v${i}){id}`)}}`,
    'data',
  ],
  [
    'undeclared variables in many operations',
    n =>
      `${repeat(n, i => `query Q${i}{...F}`)} fragment F on Query{${repeat(60, i => `a${i}:posts(limit:$v${i}){id}`)}}`,
    invalid,
  ],
  ['a huge variable', 'query($v:Int){posts(limit:$v){id}}', wrongInput, { variables: { v: 'x'.repeat(1_000_000) } }],
  [
    'lists within lists as a variable',
    'query($v:Int){posts(limit:$v){id}}',
    wrongInput,
    { variables: { v: JSON.parse(nest(4000, '[', '1', ']')) } },
  ],
  [
    'a huge date',
    'query($v:DateTime){posts(publishedAfter:$v){id}}',
    wrongInput,
    { variables: { v: `2026-01-01T00:00:00.${'0'.repeat(1_000_000)}Z` } },
  ],
  ['a huge id', 'query($v:ID!){post(id:$v){id}}', 'data', { variables: { v: '1'.repeat(1_000_000) } }],
  // Texts.
  ['commas', `{ __typename ${','.repeat(65_000)} }`, 'data'],
  ['newlines before an error', `{ __typename ${'\n'.repeat(65_000)} nothing }`, invalid],
  ['a block of indented lines', `{ post(id: """${`${' '.repeat(250)}x\n`.repeat(250)}""") { id } }`, 'data'],
  ['a text of escapes', `{ post(id: "${'\\u0041'.repeat(10_000)}") { id } }`, 'data'],
  ['braces that never close', '{'.repeat(60_000), unparsable],
  ['a text that never ends', `{ post(id: "${'x'.repeat(60_000)}`, unparsable],
]

/** Lists and objects as a value, lists as a type, selections. */
const deep: readonly (readonly [code: string, text: string])[] = [
  ['GRAPHQL_PARSE_FAILED', `{posts(limit:${nest(990, '[', '', '')}`],
  ['GRAPHQL_PARSE_FAILED', `{posts(limit:${nest(330, '{a:', '', '')}`],
  ['DOCUMENT_TOO_LARGE', `query($v:${nest(490, '[', 'Int', ']')}){a}`],
  ['DEPTH_LIMIT_EXCEEDED', `${nest(330, '{a', '{a}', '}')}`],
]

/** The largest document within the limits. */
function largest(made: Made): string {
  if (typeof made === 'string') return made
  let [fits, tooLarge] = [1, 4000]
  while (fits + 1 < tooLarge) {
    const size = (fits + tooLarge) >> 1
    if (isWithinBounds(made(size))) fits = size
    else tooLarge = size
  }
  return made(fits)
}

function isWithinBounds(text: string): boolean {
  if (text.length > documentBounds.bytes) return false
  const lexer = new Lexer(new Source(text))
  for (let tokens = 0; lexer.advance().kind !== TokenKind.EOF; tokens++) {
    if (tokens === documentBounds.tokens) return false
  }
  return true
}

/** The allowed CPU time in milliseconds. Such answers take a few, and more on a cold start. */
const mostCpuMs = 200

/** Sends a document, and checks the CPU time of the answer. One that took long is sent again, with a new text. */
async function measured(t: TestContext, duet: DuetProcess, text: string, asked?: Asked): Promise<RawResponse> {
  const app = await duet.address()
  let [response, took]: [RawResponse | undefined, number] = [undefined, mostCpuMs]
  for (let time = 0; time < 3 && took >= mostCpuMs; time++) {
    const before = duet.cpuMs
    response = await query(app, `${text}${text.length < 60_000 ? `#${time}` : ''}`, asked)
    took = duet.cpuMs - before
  }
  t.diagnostic(`${took} ms of CPU, ${text.length} characters: ${t.name}`)
  assert.ok(took < mostCpuMs, `took ${took} ms`)
  return response ?? assert.fail()
}

describe('A hostile document gets a quick and correct answer:', () => {
  let duet: DuetProcess
  let app: { url: string }
  const firstAnswers: [code: string, answer: RawResponse][] = []
  before(async () => {
    duet = serveDuet({ RATE_LIMIT_MAX: '0', DEMO_DATA: 'true', LOG_LEVEL: 'error' })
    app = await duet.address()
    for (const [code, text] of deep) firstAnswers.push([code, await query(app, text)])
    await read(app, '{ posts { id comments { author { id } } } }')
  })
  let printed = 0
  beforeEach(() => {
    printed = duet.stdout.length
  })
  afterEach(async () => {
    assert.deepEqual(await read(app, '{ __typename }'), { __typename: 'Query' }, 'the server still runs')
    assert.equal(duet.child.exitCode, null)
    assert.doesNotMatch(duet.stdout.slice(printed), /"level":50/)
  })
  after(() => duet[Symbol.asyncDispose]())

  // The first call of a function takes more of the stack than later ones do.
  it('a deeply nested one, as the first of a process', () => {
    for (const [code, answer] of firstAnswers) assertRefused(answer, 400, code)
    assert.equal(firstAnswers.length, deep.length)
  })

  for (const [name, made, expected, asked] of documents) {
    it(name, async t => {
      const response = await measured(t, duet, largest(made), asked)
      if (expected === 'data') dataOf(response)
      else assertRefused(response, 400, expected)
      assert.ok(response.body.length < 2 * 1024 * 1024, `an answer of ${response.body.length} characters`)
    })
  }
})

/**
 * Layers of fragments in which one key selects several fragments. With each layer the number of possible sets of
 * fragments in one place doubles. A rule that visits such sets would need exponential time.
 */
function layers(size: number, types: readonly (readonly [type: string, field: string])[]): string {
  const at = (layer: number) => types[layer % types.length] ?? assert.fail()
  const both = (field: string, a: string, b: string) => `{a:${field}{${a}}b:${field}{${b}}}`
  const text: string[] = []
  for (let layer = 0; layer < size; layer++) {
    const [type, field] = at(layer)
    const [next, first] =
      layer + 1 < size ? [`...Z${layer + 1}`, `...Q${(layer + 1) % types.length}_1`] : ['id:__typename', '']
    text.push(`fragment Z${layer} on ${type}${both(field, next + first, next)}`)
  }
  for (const [parity, [type, field]] of types.entries()) {
    for (let step = 1; step <= size; step++) {
      const next = step < size ? `...Q${(parity + 1) % types.length}_${step + 1}` : 'id:__typename'
      text.push(`fragment Q${parity}_${step} on ${type}${both(field, next, next)}`)
    }
  }
  return text.join('\n')
}
