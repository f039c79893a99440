import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { executeSync, getIntrospectionQuery, parse } from 'graphql'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { startTestApp } from '../support/app.ts'
import { type Asked, assertRefused, dataOf, type ErrorBody, query, repeat } from '../support/graphql.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'

const nested = (open: string, inner: string, close: string, depth: number) =>
  open.repeat(depth) + inner + close.repeat(depth)
const long = (length: number) => 'x'.repeat(length)

/** Documents with a name of this length, which is valid if it has 128 characters. */
const named: Readonly<Record<string, (size: number) => string>> = {
  'an alias': n => `{ ${long(n)}: __typename }`,
  'an operation': n => `query ${long(n)} { __typename }`,
  'a fragment': n => `{ ...${long(n)} } fragment ${long(n)} on Query { __typename }`,
  'a variable': n => `query ($${long(n)}: Int) { posts(limit: 0, offset: $${long(n)}) { id } }`,
}

/**
 * The longest allowed name and value. They consist of the letter q only, so that a quote of them is easy to find in a
 * message.
 */
const name = 'q'.repeat(128)
const value = 'q'.repeat(60_000)

/** The expected message of the first error, the document, and its variables. */
const requests: Readonly<Record<string, readonly [expected: RegExp, text: string, asked?: Asked]>> = {
  'an unknown field': [/^Cannot query field "q{100}…" on type "Query"\.$/, `{ ${name} }`],
  'many unknown fields': [/^Cannot query field "f0"/, `{ ${repeat(500, n => `f${n}`)} }`],
  'a name where none may be': [/^Syntax Error: Unexpected Name "q{99}…$/, `{ a } ${name}`],
  'a text where none may be': [/^Syntax Error: Expected Name, found String "q{99}…$/, `{ "${value}" }`],
  'a text as a number': [/^Int cannot represent non-integer value: "q{99}…$/, `{ posts(limit: "${value}") { id } }`],
  'a text of quotes as a number': [/value: .{100}…$/, `{ posts(limit: "${'\\"q'.repeat(10_000)}") { id } }`],
  'a text as a date': [
    /^Expected value of type "DateTime",.*found: "q{99}…$/,
    `{ posts(publishedAfter: "${value}") { id } }`,
  ],
  'a number of many digits': [/value: 9{100}…$/, `{ posts(limit: ${'9'.repeat(60_000)}) { id } }`],
  'a literal that nests': [/value: \{ q.{97}…$/, `{ posts(limit: ${nested('{qqqqqqqqqq: ', '1', '}', 32)}) { id } }`],
  'many variables of the wrong type': [
    /^Variable "\$v0" has invalid value: Int cannot represent non-integer value: "q{99}…$/,
    `query (${repeat(20, n => `$v${n}: Int`)}) { ${repeat(20, n => `p${n}: posts(limit: $v${n}) { id }`)} }`,
    { variables: Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`v${n}`, value.slice(0, 9_000)])) },
  ],
  'a variable that is no date': [
    /^Variable "\$v" has .*; found: "q{99}…$/,
    'query ($v: DateTime) { posts(publishedAfter: $v) { id } }',
    { variables: { v: value } },
  ],
  'the name of no operation': [
    /^There is no operation named "q{99}…"\.$/, // no half of a character
    'query A { __typename } query B { __typename }',
    { operationName: `${value.slice(0, 99)}🎈${value}` },
  ],
  'the name of no operation, with words of errors in it': [
    /^There is no operation named "q"found: .{91}…"\.$/,
    '{ __typename }',
    { operationName: `q"found: represent value: ${'"q'.repeat(30_000)}` },
  ],
  'a circle of fragments': [
    /^Cannot spread fragment "q{100}…" within itself via ("q{100}…", )+"q{1,100}…/,
    `{ me { ...${name.slice(3)}100 } } ${repeat(90, n => `fragment ${name.slice(3)}${n + 100} on User { ...${name.slice(3)}${((n + 1) % 90) + 100} }`)}`,
  ],
}

/** The introspection query of graphql-js, which GraphiQL, GraphQL Code Generator, Apollo and many other tools send. */
const usual = [
  getIntrospectionQuery(),
  getIntrospectionQuery({
    ...{ descriptions: true, specifiedByUrl: true, directiveIsRepeatable: true },
    ...{ schemaDescription: true, inputValueDeprecation: true, oneOf: true },
  }),
]

describe('Documents', () => {
  const app = shared(() => startTestApp({ RATE_LIMIT_MAX: '0' }))

  describe('A document at its bounds', () => {
    it('is executed, and a larger one is refused with DOCUMENT_TOO_LARGE, by POST and over a socket', async () => {
      using socket = await SocketClient.connect(app)
      for (const [what, text] of Object.entries(named)) {
        dataOf(await query(app, text(128)))
        assert.equal((await socket.ask(text(128))).errors, undefined, what)
        assertRefused(await query(app, text(129)), 400, 'DOCUMENT_TOO_LARGE', /a name of more than 128 characters/)
        assert.equal((await socket.ask(text(129))).errors?.[0]?.extensions.code, 'DOCUMENT_TOO_LARGE', what)
      }
    })

    it('may select from 100 fields of one name or alias, wherever they are, and is refused as too large from 101 on', async () => {
      const part = (n: number) => repeat(n, () => 'posts(limit: 0) { id }')
      const doubled = (n: number) => `{ ...F ...on Query { ${part(50)} } } fragment F on Query { ${part(n - 50)} }`
      const aliased = (n: number) => `{ me { id } ${repeat(n - 1, m => `${m % 2 ? 'me: me' : 'me'} { id }`)} }`
      for (const text of [doubled, aliased, (n: number) => `{ __schema { ${repeat(n, () => 'types { name }')} } }`]) {
        const { status, body } = await query(app, text(100))
        assert.ok(status !== 400 || !body.includes('DOCUMENT_TOO_LARGE'), text(100))
        assertRefused(await query(app, text(101)), 400, 'DOCUMENT_TOO_LARGE', /more than 100 fields of one name/)
      }
    })

    // Nothing in the schema takes a literal that nests: the standard rules refuse what the bounds let pass.
    it('is validated if a literal or a type nests 32 deep, and refused as too large from 33 on', async () => {
      const expected = /a literal or a type that nests more than 32 deep/
      for (const text of [
        (n: number) => `{ posts(limit: ${nested('[', '1', ']', n)}) { id } }`,
        (n: number) => `{ a { b } posts(limit: ${nested('[', '1', ']', n)}) { id } }`,
        (n: number) => `{ posts(limit: ${nested('{a: ', '1', '}', n)}) { id } }`,
        (n: number) => `query ($v: ${nested('[', 'Int', ']', n)}) { posts(limit: $v) { id } }`,
        (n: number) => `query ($u: Int @x(y: 1), $v: Int = [${nested('{a: ', '1', '}', n - 1)}]) { id }`,
        (n: number) => `{ __typename @include(if: ${nested('[', 'true', ']', n)}) }`,
      ]) {
        assertRefused(await query(app, text(32)), 400, 'GRAPHQL_VALIDATION_FAILED')
        assertRefused(await query(app, text(33)), 400, 'DOCUMENT_TOO_LARGE', expected)
      }
    })

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

    it('is never called too large because of the text of its strings and comments', async () => {
      const refusal = await query(app, '{ "tokens. Parsing aborted" }')
      assertRefused(refusal, 400, 'GRAPHQL_PARSE_FAILED', /^Syntax Error: Expected Name, found String/)
      const comment = `${'{'.repeat(1000)} ${long(1000)}`
      dataOf(await query(app, `{ post(id: "${long(1000)} ${'['.repeat(1000)}") { id } } # ${comment}`))
      dataOf(await query(app, `{ ${repeat(80, n => `a${n}: post(id: """${'{'.repeat(100)}""") { id }`)} }`))
    })
  })

  for (const [what, [expected, text, asked]] of Object.entries(requests)) {
    it(`errors repeat at most 100 characters of the input: ${what}`, async () => {
      const { status, body } = await query(app, text, asked)
      assert.equal(status, 400, body.slice(0, 1000))
      const { errors }: { errors: readonly ErrorBody[] } = JSON.parse(body)
      assert.ok(errors.length > 0 && errors.length <= 11, `${errors.length} errors`)
      for (const { message, locations = [] } of errors) {
        assert.ok(message.length <= 501, `${message.length} characters: ${message}`)
        assert.doesNotMatch(message, /q{101}|9{101}|\n/)
        assert.ok(locations.length <= 10, `${locations.length} locations`)
      }
      assert.match(errors[0]?.message ?? '', expected)
      assert.ok(body.length < 16 * 1024, `${body.length} characters`)
      using socket = await SocketClient.connect(app)
      socket.send({ type: 'subscribe', id: what, payload: { query: text, ...asked } })
      await socket.until(() => socket.messages.length === 2)
      assert.deepEqual(socket.messages[1], { id: what, type: 'error', payload: errors })
    })
  }

  describe('An introspection query', () => {
    it('of the usual tools gets the same answer as from graphql-js, each time', async () => {
      for (const text of [...usual, ...usual]) {
        const { data } = executeSync({ schema: loadSchema(), document: parse(text) })
        assert.deepEqual(dataOf(await query(app, text)), JSON.parse(JSON.stringify(data)))
      }
    })

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

    /** The same scalar of every type, and lists within lists. */
    const large = [
      `{ __schema { ${repeat(33, n => `a${n}: types { ...F }`)} } } fragment F on __Type { ${repeat(240, n => `k${n}: kind`)} }`,
      `{ __schema { ${repeat(30, n => `a${n}: types { fields { args { type { ...T } } type { ...T } } }`)} } } fragment T on __Type { kind name ofType { kind name ofType { kind name } } }`,
    ]
    it('with a too large answer is refused however few tokens ask for it', async () => {
      for (const text of large) assertRefused(await query(app, text), 400, 'COMPLEXITY_LIMIT_EXCEEDED')
    })
  })
})
