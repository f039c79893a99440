import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { type Asked, type ErrorBody, query, repeat } from '../support/graphql.ts'
import { SocketClient } from '../support/sockets.ts'

const most = { message: 500 }
const nested = (open: string, close: string, depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`

/**
 * The longest allowed name and value. They consist of the letter q only, so that a quote of them is easy to find in a
 * message.
 */
const name = 'q'.repeat(128)
const value = 'q'.repeat(60_000)

/** The expected message of the first error, the document, and its variables. */
const requests: Readonly<Record<string, readonly [expected: RegExp, text: string, asked?: Asked]>> = {
  'an unknown field': [/^Cannot query field "q{100}…" on type "Query"\.$/, `{ ${name} }`],
  'an unknown argument': [/^Unknown argument "q{100}…" on field/, `{ posts(${name}: 1) { id } }`],
  'an unknown type': [/^Unknown type "q{100}…"/, `query ($v: ${name}) { posts(limit: $v) { id } }`],
  'an unknown directive': [/^Unknown directive "@q{99}…"/, `{ __typename @${name} }`],
  'an unknown fragment': [/^Unknown fragment "q{100}…"/, `{ ...${name} }`],
  'an undeclared variable': [/^Variable "\$q{99}…" is not defined/, `{ posts(limit: $${name}) { id } }`],
  'a variable that nobody uses': [/^Variable "\$q{99}…" is never used/, `query ($${name}: Int) { __typename }`],
  'a fragment that nobody uses': [
    /^Fragment "q{100}…" is never/,
    `{ __typename } fragment ${name} on Query { me { id } }`,
  ],
  'fields that cannot be merged': [/^Fields "q{100}…" conflict/, `{ ${name}: __typename ${name}: me { id } }`],
  'a name where none may be': [/^Syntax Error: Unexpected Name "q{99}…$/, `{ a } ${name}`],
  'a text where none may be': [/^Syntax Error: Expected Name, found String "q{99}…$/, `{ "${value}" }`],
  'a block of text where none may be': [/found BlockString "q{99}…$/, `{ """${value}""" }`],
  'a text as a number': [/^Int cannot represent non-integer value: "q{99}…$/, `{ posts(limit: "${value}") { id } }`],
  'a text of quotes as a number': [/value: .{100}…$/, `{ posts(limit: "${'\\"q'.repeat(10_000)}") { id } }`],
  'a text as a date': [
    /^Expected value of type "DateTime",.*found: "q{99}…$/,
    `{ posts(publishedAfter: "${value}") { id } }`,
  ],
  'a number of many digits': [/value: 9{100}…$/, `{ posts(limit: ${'9'.repeat(60_000)}) { id } }`],
  'a list as a number': [/value: .{100}…$/, `{ posts(limit: [${repeat(900, () => '"q"')}]) { id } }`],
  'a literal that nests': [/value: \{ q.{97}…$/, `{ posts(limit: ${nested('{qqqqqqqqqq: ', '}', 32)}) { id } }`],
  'a variable of the wrong type': [
    /^Variable "\$v" has invalid value: Int cannot represent non-integer value: "q{99}…$/,
    'query ($v: Int) { posts(limit: $v) { id } }',
    { variables: { v: value } },
  ],
  'a variable that is no date': [
    /^Variable "\$v" has .*; found: "q{99}…$/,
    'query ($v: DateTime) { posts(publishedAfter: $v) { id } }',
    { variables: { v: value } },
  ],
  'the name of no operation': [
    /^There is no operation named "q{100}…"\.$/,
    'query A { __typename } query B { __typename }',
    { operationName: value },
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

function assertShort(errors: readonly ErrorBody[]): void {
  assert.ok(errors.length > 0 && errors.length <= 11, `${errors.length} errors`)
  for (const { message, locations = [] } of errors) {
    assert.ok(message.length <= most.message + 1, `${message.length} characters: ${message}`)
    assert.doesNotMatch(message, /q{101}|9{101}|\n/)
    assert.ok(locations.length <= 10, `${locations.length} locations`)
  }
}

describe('Errors repeat at most 100 characters of the input:', () => {
  let app: Awaited<ReturnType<typeof startTestApp>>
  let socket: SocketClient
  before(async () => {
    app = await startTestApp({ RATE_LIMIT_MAX: '0' })
    socket = await SocketClient.connect(app)
  })
  after(async () => {
    socket[Symbol.dispose]()
    await app[Symbol.asyncDispose]()
  })

  for (const [what, [expected, text, asked]] of Object.entries(requests)) {
    it(what, async () => {
      const { status, body } = await query(app, text, asked)
      assert.equal(status, 400, body.slice(0, 1000))
      const { errors }: { errors: readonly ErrorBody[] } = JSON.parse(body)
      assertShort(errors)
      assert.match(errors[0]?.message ?? '', expected)
      assert.ok(body.length < 16 * 1024, `${body.length} characters`)
      if (asked?.operationName !== undefined) return // the helper for sockets sends no operationName
      assert.deepEqual((await socket.ask(text, asked?.variables ?? {})).errors, errors)
    })
  }

  it('also for the name of an operation over a socket', async () => {
    const payload = { query: 'query A { __typename } query B { __typename }', operationName: value }
    socket.send({ type: 'subscribe', id: 'named', payload })
    await socket.until(() => socket.messages.some(({ id, type }) => id === 'named' && type === 'error'))
    const message = socket.messages.find(({ id, type }) => id === 'named' && type === 'error')
    const errors = message?.payload as readonly ErrorBody[]
    assert.equal(errors[0]?.message, `There is no operation named "${'q'.repeat(100)}…".`)
  })
})
