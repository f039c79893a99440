import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, test } from 'node:test'
import { ConfigError } from '../../src/config.ts'
import { documentsIn, ManifestError } from '../../src/graphql/persisted/manifest.ts'
import { startTestApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'
import { persisted, sha256, transports } from './support/requests.ts'

const latest = 'query Latest($n: Int) { posts(limit: $n) { id } }'
const typename = '{ __typename }'
const like = 'mutation Like { likePost(id: 1) { id } }'
const some = 'query Some($n: Int!) { posts(limit: $n) { id title } }'
const added = 'subscription Added { postAdded { id } }'
const md5 = createHash('md5').update(latest).digest('hex')

/** The format of Relay's compiler and GraphQL Code Generator. */
const mapped = { [md5]: latest, 'op-typename': typename, [sha256(like)]: like, added, some }
const apollo = {
  format: 'apollo-persisted-query-manifest',
  version: 1,
  operations: Object.entries(mapped).map(([id, body]) => ({ id, name: 'A name', type: 'query', body })),
}

/** An app that trusts only the documents of this manifest. */
async function startTrusting(manifest: unknown, env: Readonly<Record<string, string>> = {}) {
  using folder = temporaryFolder()
  const path = join(folder.path, 'manifest.json')
  writeFileSync(path, typeof manifest === 'string' ? manifest : JSON.stringify(manifest))
  return await startTestApp({ RATE_LIMIT_MAX: '0', TRUSTED_DOCUMENTS: path, ...env })
}

test('the formats of a map and of Apollo name the same documents', () => {
  assert.deepEqual(documentsIn(JSON.stringify(apollo)), documentsIn(JSON.stringify(mapped)))
})

describe('With a manifest', () => {
  const app = shared(() => startTrusting(mapped))

  for (const [name, send] of Object.entries(transports)) {
    it(`by ${name}: a document runs if it is named by its id or hash, in any usual way, or sent as it is`, async () => {
      const ways: Readonly<Record<string, unknown>>[] = [
        { query: latest },
        { documentId: md5 },
        { documentId: `sha256:${sha256(latest)}` },
        { doc_id: md5 },
        { id: md5 },
        { query: '', documentId: md5 },
        persisted(md5),
        persisted(sha256(latest)),
        { query: latest, ...persisted(sha256(latest)) },
        { query: latest, ...persisted(md5) },
        { query: latest, id: 'an id of the client' },
        { documentId: md5, ...persisted(md5) },
      ]
      for (const way of ways) {
        const { data, code } = await send(app, { ...way, variables: { n: 1 } })
        assert.deepEqual({ data, code }, { data: { posts: [] }, code: undefined }, JSON.stringify(way))
      }
      assert.deepEqual((await send(app, { id: 'op-typename' })).data, { __typename: 'Query' })
    })

    it(`by ${name}: anything else is refused, introspection too`, async () => {
      const others = [
        { query: '{ __typename }  ' },
        { query: '{ __schema { types { name } } }' },
        { query: `${latest}\n` },
        { query: '{' },
        { documentId: sha256('{ other: __typename }') },
        { id: 'toString' },
        persisted(sha256('{ other: __typename }')),
        { query: '{ other: __typename }', ...persisted(sha256('{ other: __typename }')) },
        { query: '{ other: __typename }', documentId: md5 },
      ]
      for (const other of others) {
        const { status, data, code } = await send(app, other)
        assert.deepEqual([data, code], [undefined, 'DOCUMENT_NOT_TRUSTED'], JSON.stringify(other))
        assert.equal(status, name === 'a socket' ? undefined : 400)
      }
    })

    it(`by ${name}: a hash or an id of another text is told before anything about the text`, async () => {
      for (const text of [typename, '{ other: __typename }', '{']) {
        for (const hash of [sha256(latest), md5, 'x']) {
          const { code, message } = await send(app, { query: text, ...persisted(hash) })
          assert.equal(code, 'BAD_REQUEST', text)
          assert.match(message ?? '', /is not the hash of the query/)
        }
        const expected = text === typename ? undefined : 'DOCUMENT_NOT_TRUSTED'
        assert.equal((await send(app, { query: text, ...persisted(sha256(text)) })).code, expected)
      }
    })
  }

  it('an operation whose cost depends on a variable without a default is checked with each request', async () => {
    const { POST: send } = transports
    assert.deepEqual((await send?.(app, { id: 'some', variables: { n: 5 } }))?.data, { posts: [] })
    assert.equal((await send?.(app, { id: 'some', variables: { n: 1000 } }))?.code, 'COMPLEXITY_LIMIT_EXCEEDED')
  })

  it('an id that is not a string is ignored', async () => {
    const { POST: send } = transports
    assert.deepEqual((await send?.(app, { documentId: 5, doc_id: null, id: md5 }))?.data, { posts: [] })
    for (const id of [5, null, [md5], {}, '']) assert.equal((await send?.(app, { id }))?.code, 'BAD_REQUEST')
  })

  it('a subscription runs by its id, and a mutation not by GET', async () => {
    using client = await SocketClient.connect(app)
    client.send({ type: 'subscribe', id: 'a', payload: { documentId: 'added' } })
    client.send({ type: 'subscribe', id: 'b', payload: { documentId: 'removed' } })
    await client.until(() => client.messages.some(({ id }) => id === 'b'))
    assert.deepEqual(
      client.messages.filter(({ id }) => id !== undefined).map(({ id, type }) => `${id} ${type}`),
      ['b error'],
    )
    assert.equal((await transports.GET?.(app, { id: sha256(like) }))?.status, 405)
  })
})

const bad: Readonly<Record<string, readonly [manifest: unknown, message: RegExp]>> = {
  'is not JSON': ['{', /^is not valid JSON$/],
  'is a list': [[latest], /^must be a JSON object$/],
  'is empty': [{}, /^has no operation$/],
  'has a number for a text': [{ a: latest, b: 5 }, /^the document of "b" must be a text$/],
  'has another version': [{ ...apollo, version: 2 }, /^has another format or version/],
  'has another format': [{ ...apollo, format: 'x' }, /^has another format or version/],
  'has no list of operations': [{ ...apollo, operations: {} }, /^operations must be a list$/],
  'has an operation without a body': [
    { ...apollo, operations: [apollo.operations[0], { id: 'x' }] },
    /^operation 2 must have the texts id and body$/,
  ],
  'has an id twice': [
    { ...apollo, operations: [apollo.operations[0], apollo.operations[0]] },
    /^two operations have the id "/,
  ],
}

test('a manifest of another shape is refused, with what is wrong with it', () => {
  for (const [what, [manifest, message]] of Object.entries(bad)) {
    const json = typeof manifest === 'string' ? manifest : JSON.stringify(manifest)
    const isTold = (error: unknown) =>
      error instanceof ManifestError && message.test(error.message.slice('TRUSTED_DOCUMENTS: '.length))
    assert.throws(() => documentsIn(json), isTold, what)
  }
})

type Broken = readonly [manifest: object, message: RegExp, env?: Readonly<Record<string, string>>]

const broken: Readonly<Record<string, Broken>> = {
  'is not GraphQL': [{ x: 'query Bad {' }, /Bad \("x"\): Syntax Error: /],
  'does not fit the schema': [{ x: typename, y: 'query Bad { nothing }' }, /Bad \("y"\): Cannot query field "nothing"/],
  'costs too much by default': [
    { x: 'query Much($n: Int = 1000) { posts(limit: $n) { id title } }' },
    /Much \("x"\): The operation costs 2000/,
  ],
  'asks for the schema, which is off': [
    { schema: 'query Ask { __schema { queryType { name } } }' },
    /Ask \("schema"\): /,
    { INTROSPECTION: 'off' },
  ],
}

test('the start fails with one line that names the operation if one cannot be executed, or the file not read', async () => {
  for (const [what, [manifest, message, env]] of Object.entries(broken)) {
    await assert.rejects(startTrusting(manifest, env), (error: unknown) => {
      assert.ok(error instanceof ConfigError, what)
      assert.match(error.message, /^TRUSTED_DOCUMENTS: [^\n]+$/)
      assert.match(error.message, message)
      return true
    })
  }
  const missing = { TRUSTED_DOCUMENTS: '/nowhere/manifest.json' }
  await assert.rejects(startTestApp(missing), /^ConfigError: TRUSTED_DOCUMENTS: the file cannot be read \(ENOENT\)$/)
})

test('without a manifest, ids of documents are ignored', async () => {
  await using app = await startTestApp({ RATE_LIMIT_MAX: '0' })
  for (const send of Object.values(transports)) {
    assert.deepEqual((await send(app, { query: typename, documentId: 'x', id: 'y' })).data, { __typename: 'Query' })
    assert.equal((await send(app, { documentId: 'x' })).code, 'BAD_REQUEST')
  }
})
