import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { assertRefused, dataOf, query, repeat } from '../support/graphql.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'

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
  ]

describe('A document at its bounds', () => {
  const app = shared(() => startTestApp({ RATE_LIMIT_MAX: '0' }))

  it('is executed, and a larger one is refused with DOCUMENT_TOO_LARGE, by POST and over a socket', async () => {
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

  it('may have any text in strings and comments', async () => {
    dataOf(
      await query(app, `{ post(id: "${long(1000)} ${'['.repeat(1000)}") { id } } # ${'{'.repeat(1000)} ${long(1000)}`),
    )
    dataOf(await query(app, `{ ${repeat(80, n => `a${n}: post(id: """${'{'.repeat(100)}""") { id }`)} }`))
  })
})
