import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, test } from 'node:test'
import { ConfigError } from '../../src/config.ts'
import { persistedBounds } from '../../src/graphql/persisted/automatic.ts'
import { documentsIn, ManifestError } from '../../src/graphql/persisted/manifest.ts'
import { startTestApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import { query } from '../support/graphql.ts'
import type { Served } from '../support/http.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'
import { type Members, persisted, sha256, transports } from './support/requests.ts'

/** What a socket is told about these operations, each named by its place, until the last one is answered. */
async function heardBySocket(app: Served, payloads: readonly Members[]): Promise<readonly string[]> {
  using client = await SocketClient.connect(app)
  for (const [at, payload] of payloads.entries()) client.send({ type: 'subscribe', id: String(at), payload })
  await client.until(() => client.messages.some(({ id }) => id === String(payloads.length - 1)))
  return client.messages.filter(({ id }) => id !== undefined).map(({ id, type }) => `${id} ${type}`)
}

let texts = 0
/** A text that no test has sent before. */
const newText = () => `query ($n: Int) { a${++texts}: __typename @skip(if: false) posts(limit: $n) { id } }`

/** Texts that are never learnt, by the error code that each gets with its own hash. */
const refusedTexts = {
  GRAPHQL_PARSE_FAILED: '{',
  GRAPHQL_VALIDATION_FAILED: '{ nothing }',
  DEPTH_LIMIT_EXCEEDED: '{ user(id: 1) { posts { comments { author { posts { author { id } } } } } } }',
  DOCUMENT_TOO_LARGE: `{ id } #${'x'.repeat(70_000)}`,
}

describe('Automatic persisted queries', () => {
  const app = shared(() => startTestApp({ RATE_LIMIT_MAX: '0' }))

  for (const [name, send] of Object.entries(transports)) {
    const refused = name === 'a socket' ? undefined : 400

    it(`by ${name}: an unknown hash is refused, and accepted once its text was sent; an empty text counts as none`, async () => {
      const text = newText()
      const extensions = persisted(sha256(text))
      const unknown = { code: 'PERSISTED_QUERY_NOT_FOUND', message: 'PersistedQueryNotFound' }
      for (const more of [{}, { query: '' }])
        assert.deepEqual(await send(app, { ...extensions, ...more }), { status: refused, data: undefined, ...unknown })
      const data = { [`a${texts}`]: 'Query', posts: [] }
      for (const more of [{ query: text }, { variables: { n: 0 } }, { query: '' }])
        assert.deepEqual((await send(app, { ...extensions, ...more })).data, data)
      for (const [other, sendOther] of Object.entries(transports))
        assert.deepEqual((await sendOther(app, extensions)).data, data, other)
    })

    it(`by ${name}: a hash of another text, or another version, is refused and stores nothing`, async () => {
      const [text, other] = [newText(), newText()]
      const wrong = await send(app, { query: text, ...persisted(sha256(other)) })
      assert.deepEqual([wrong.status, wrong.code], [refused, 'BAD_REQUEST'])
      assert.match(wrong.message ?? '', /is not the hash of the query/)
      for (const version of [2, '1', null, 0])
        for (const more of [{}, { query: text }]) {
          const { code, message } = await send(app, { ...more, ...persisted(sha256(text), version) })
          assert.deepEqual([code, message], ['BAD_REQUEST', 'extensions.persistedQuery.version must be 1.'])
        }
      for (const members of [persisted(sha256(text)), persisted(sha256(other))])
        assert.equal((await send(app, members)).code, 'PERSISTED_QUERY_NOT_FOUND')
      assert.ok((await send(app, { query: other, ...persisted(sha256(other)) })).data)
      const known = await send(app, { query: text, ...persisted(sha256(other)) })
      assert.deepEqual([known.status, known.message], [refused, wrong.message])
    })
  }

  it('a hash of another text is told before anything about the text, and a text that is refused is never learnt', async () => {
    for (const send of [transports.POST, transports['a socket']])
      for (const [code, text] of Object.entries(refusedTexts)) {
        for (const hash of [sha256(text).toUpperCase(), 'x']) {
          const wrong = await send(app, { query: text, ...persisted(hash) })
          assert.equal(wrong.code, 'BAD_REQUEST', code)
          assert.match(wrong.message ?? '', /is not the hash of the query/)
        }
        for (let time = 0; time < 2; time++) {
          assert.equal((await send(app, { query: text, ...persisted(sha256(text)) })).code, code)
          assert.equal((await send(app, persisted(sha256(text)))).code, 'PERSISTED_QUERY_NOT_FOUND', code)
        }
      }
  })

  it('a hash that is not a string, or not inside an object, is refused, and other members of extensions are ignored', async () => {
    const text = newText()
    const { extensions } = persisted(sha256(text))
    const { persistedQuery } = extensions
    const more = { other: [1], persistedQuery: { ...Object(persistedQuery), miss: true } }
    const hashes = [5, null, undefined, '', [sha256(text)]].map(hash => persisted(hash).extensions)
    const others = ['x', 5, [1]].map(each => ({ persistedQuery: each }))
    for (const send of Object.values(transports)) {
      for (const wrong of [...hashes, ...others])
        assert.equal((await send(app, { query: text, extensions: wrong })).code, 'BAD_REQUEST', JSON.stringify(wrong))
      assert.ok((await send(app, { query: text, extensions: more })).data)
      assert.ok((await send(app, { query: text, extensions: { persistedQuery: null } })).data)
    }
  })

  it('ids of documents are ignored', async () => {
    for (const send of Object.values(transports)) {
      const named = { query: '{ __typename }', documentId: 'x', id: 'y' }
      assert.deepEqual((await send(app, named)).data, { __typename: 'Query' })
      assert.equal((await send(app, { documentId: 'x' })).code, 'BAD_REQUEST')
    }
  })

  it('a text with half a surrogate pair, which has the hash of another text, does not take its place', async () => {
    const text = '{ __typename } # \ufffd'
    const half = '{ __typename } # \ud800'
    const hash = persisted(sha256(text))
    assert.deepEqual(persisted(sha256(half)), hash)
    for (const send of [transports.POST, transports['a socket']]) {
      assert.equal((await send(app, { query: half, ...hash })).code, 'GRAPHQL_PARSE_FAILED')
      assert.ok((await send(app, { query: text, ...hash })).data)
      assert.equal((await send(app, { query: half, ...hash })).code, 'GRAPHQL_PARSE_FAILED')
      assert.ok((await send(app, hash)).data)
    }
  })

  it('a subscription can be named by its hash, and a mutation not by GET', async () => {
    const text = 'subscription { postAdded { id title } }'
    const hashed = persisted(sha256(text))
    const payloads = [{ query: text, ...hashed }, hashed, persisted(sha256(`${text} `))]
    assert.deepEqual(await heardBySocket(app, payloads), ['2 error'])
    const mutation = 'mutation { likePost(id: 1) { id } }'
    await query(app, mutation, persisted(sha256(mutation)))
    assert.equal((await transports.GET(app, persisted(sha256(mutation)))).status, 405)
  })

  it('texts that were not used for long are forgotten, and can be sent again', async () => {
    const { POST: post } = transports
    const large = () => `${newText()} #${'x'.repeat(60_000)}`
    const text = large()
    assert.ok((await post(app, { query: text, ...persisted(sha256(text)) })).data)
    for (let bytes = 0; bytes < 2 * persistedBounds.bytes; bytes += 120_000) {
      const other = large()
      await post(app, { query: other, ...persisted(sha256(other)) })
    }
    assert.equal((await post(app, persisted(sha256(text)))).code, 'PERSISTED_QUERY_NOT_FOUND')
    assert.ok((await post(app, { query: text, ...persisted(sha256(text)) })).data)
    assert.ok((await post(app, persisted(sha256(text)))).data)
  })
})

const latest = 'query Latest($n: Int) { posts(limit: $n) { id } }'
const typename = '{ __typename }'
const like = 'mutation Like { likePost(id: 1) { id } }'
const some = 'query Some($n: Int!) { posts(limit: $n) { id title } }'
const added = 'subscription Added { postAdded { id } }'
const md5 = createHash('md5').update(latest).digest('hex')

/** The format of Relay's compiler and GraphQL Code Generator. */
const mapped = { [md5]: latest, [sha256(some)]: typename, [sha256(like)]: like, added, some }
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

describe('With a manifest of trusted documents', () => {
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
        { documentId: md5, ...persisted(sha256(typename)) },
      ]
      for (const way of ways) {
        const { data, code } = await send(app, { ...way, variables: { n: 1 } })
        assert.deepEqual({ data, code }, { data: { posts: [] }, code: undefined }, JSON.stringify(way))
      }
      assert.deepEqual((await send(app, { id: sha256(some) })).data, { __typename: 'Query' }) // ids precede hashes
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
    assert.deepEqual((await send(app, { id: 'some', variables: { n: 5 } })).data, { posts: [] })
    assert.equal((await send(app, { id: 'some', variables: { n: 1000 } })).code, 'COMPLEXITY_LIMIT_EXCEEDED')
  })

  it('an id that is not a string is ignored', async () => {
    const { POST: send } = transports
    assert.deepEqual((await send(app, { documentId: 5, doc_id: null, id: md5 })).data, { posts: [] })
    for (const id of [5, null, [md5], {}, '']) assert.equal((await send(app, { id })).code, 'BAD_REQUEST')
  })

  it('a subscription runs by its id, and a mutation not by GET', async () => {
    assert.deepEqual(await heardBySocket(app, [{ documentId: 'added' }, { documentId: 'removed' }]), ['1 error'])
    assert.equal((await transports.GET(app, { id: sha256(like) })).status, 405)
  })
})

const [first] = apollo.operations
const bad: Readonly<Record<string, readonly [manifest: unknown, message: RegExp]>> = {
  'is not JSON': ['{', /^is not valid JSON$/],
  'is a list': [[latest], /^must be a JSON object$/],
  'is empty': [{}, /^has no operation$/],
  'has a number for a text': [{ [`b\n${'c'.repeat(69)}`]: 5 }, /^the document of "b\\nc{68}…" must be a text$/],
  'has another version': [{ ...apollo, version: 2 }, /^has another format or version/],
  'has another format': [{ ...apollo, format: 'x' }, /^has another format or version/],
  'has no list of operations': [{ ...apollo, operations: {} }, /^operations must be a list$/],
  'has an operation without a body': [{ ...apollo, operations: [first, { id: 'x' }] }, /^operation 2 must have the/],
  'has an empty id': [{ ...apollo, operations: [{ ...first, id: '' }] }, /^operation 1 must have the texts/],
  'has an id twice': [{ ...apollo, operations: [first, first] }, /^two operations have the id "/],
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
  'has a limit out of range': [{ x: 'query Far { posts(limit: 5000) { id } }' }, /Far \("x"\): limit must be/],
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
