import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { persistedBounds } from '../../src/graphql/persisted/automatic.ts'
import { startTestApp } from '../support/app.ts'
import { query } from '../support/graphql.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'
import { persisted, sha256, transports } from './support/requests.ts'

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

/** Headers are limited to 16 KiB. */
const longestInUrl = 10_000

describe('Automatic persisted queries', () => {
  const app = shared(() => startTestApp({ RATE_LIMIT_MAX: '0' }))

  for (const [name, send] of Object.entries(transports)) {
    const refused = name === 'a socket' ? undefined : 400

    it(`by ${name}: an unknown hash is refused, and accepted once its text was sent`, async () => {
      const text = newText()
      const extensions = persisted(sha256(text))
      const unknown = { status: refused, code: 'PERSISTED_QUERY_NOT_FOUND', message: 'PersistedQueryNotFound' }
      assert.deepEqual({ ...(await send(app, extensions)), errors: undefined }, { ...unknown, errors: undefined })
      const data = { [`a${texts}`]: 'Query', posts: [] }
      assert.deepEqual((await send(app, { ...extensions, query: text })).data, data)
      assert.deepEqual((await send(app, { ...extensions, variables: { n: 0 } })).data, data)
      for (const [other, sendOther] of Object.entries(transports)) {
        assert.deepEqual((await sendOther(app, extensions)).data, data, other)
      }
    })

    it(`by ${name}: a hash of another text, or another version, is refused and stores nothing`, async () => {
      const [text, other] = [newText(), newText()]
      const wrong = await send(app, { query: text, ...persisted(sha256(other)) })
      assert.deepEqual([wrong.status, wrong.code], [refused, 'BAD_REQUEST'])
      assert.match(wrong.message ?? '', /is not the hash of the query/)
      for (const members of [persisted(sha256(text)), persisted(sha256(other))]) {
        assert.equal((await send(app, members)).code, 'PERSISTED_QUERY_NOT_FOUND')
      }
      for (const version of [2, '1', null, 0]) {
        for (const more of [{}, { query: text }]) {
          const { code, message } = await send(app, { ...more, ...persisted(sha256(text), version) })
          assert.deepEqual([code, message], ['BAD_REQUEST', 'extensions.persistedQuery.version must be 1.'])
        }
      }
      assert.equal((await send(app, persisted(sha256(text)))).code, 'PERSISTED_QUERY_NOT_FOUND')
      assert.ok((await send(app, { query: other, ...persisted(sha256(other)) })).data)
      const known = await send(app, { query: text, ...persisted(sha256(other)) })
      assert.deepEqual([known.status, known.message], [refused, wrong.message])
    })

    it(`by ${name}: a hash of another text is told before anything about the text`, async () => {
      for (const [code, text] of Object.entries(refusedTexts)) {
        if (name === 'GET' && text.length > longestInUrl) continue
        for (const hash of [sha256(text).toUpperCase(), 'x']) {
          const wrong = await send(app, { query: text, ...persisted(hash) })
          assert.deepEqual([wrong.status, wrong.code], [refused, 'BAD_REQUEST'], code)
          assert.match(wrong.message ?? '', /is not the hash of the query/)
        }
        for (let time = 0; time < 2; time++) {
          assert.equal((await send(app, { query: text, ...persisted(sha256(text)) })).code, code)
          assert.equal((await send(app, persisted(sha256(text)))).code, 'PERSISTED_QUERY_NOT_FOUND', code)
        }
      }
    })

    it(`by ${name}: an empty text with a hash counts as no text`, async () => {
      const text = newText()
      const extensions = persisted(sha256(text))
      assert.equal((await send(app, { query: '', ...extensions })).code, 'PERSISTED_QUERY_NOT_FOUND')
      await send(app, { query: text, ...extensions })
      assert.ok((await send(app, { query: '', ...extensions })).data)
    })
  }

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

  it('a text with half a surrogate pair, which has the hash of another text, does not take its place', async () => {
    const text = '{ __typename } # \ufffd'
    const half = '{ __typename } # \ud800'
    const hash = persisted(sha256(text))
    assert.deepEqual(persisted(sha256(half)), hash)
    for (const send of [transports.POST, transports['a socket']]) {
      assert.equal((await send?.(app, { query: half, ...hash }))?.code, 'GRAPHQL_PARSE_FAILED')
      assert.ok((await send?.(app, { query: text, ...hash }))?.data)
      assert.equal((await send?.(app, { query: half, ...hash }))?.code, 'GRAPHQL_PARSE_FAILED')
      assert.ok((await send?.(app, hash))?.data)
    }
  })

  it('a subscription can be named by its hash, and a mutation not by GET', async () => {
    const text = 'subscription { postAdded { id title } }'
    using client = await SocketClient.connect(app)
    client.send({ type: 'subscribe', id: 'a', payload: { query: text, ...persisted(sha256(text)) } })
    client.send({ type: 'subscribe', id: 'b', payload: persisted(sha256(text)) })
    client.send({ type: 'subscribe', id: 'c', payload: persisted(sha256(`${text} `)) })
    await client.until(() => client.messages.some(({ id }) => id === 'c'))
    assert.deepEqual(
      client.messages.filter(({ id }) => id !== undefined).map(({ id, type }) => `${id} ${type}`),
      ['c error'],
    )
    const mutation = 'mutation { likePost(id: 1) { id } }'
    await query(app, mutation, persisted(sha256(mutation)))
    const answer = await transports.GET?.(app, persisted(sha256(mutation)))
    assert.equal(answer?.status, 405)
  })

  it('texts that were not used for long are forgotten, and can be sent again', async () => {
    const post = transports.POST
    const large = () => `${newText()} #${'x'.repeat(60_000)}`
    const text = large()
    assert.ok((await post?.(app, { query: text, ...persisted(sha256(text)) }))?.data)
    for (let bytes = 0; bytes < 2 * persistedBounds.bytes; bytes += 120_000) {
      const other = large()
      await post?.(app, { query: other, ...persisted(sha256(other)) })
    }
    assert.equal((await post?.(app, persisted(sha256(text))))?.code, 'PERSISTED_QUERY_NOT_FOUND')
    assert.ok((await post?.(app, { query: text, ...persisted(sha256(text)) }))?.data)
    assert.ok((await post?.(app, persisted(sha256(text))))?.data)
  })
})
