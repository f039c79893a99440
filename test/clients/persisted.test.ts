import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client'
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries'
import { print } from '@apollo/client/utilities'
import { fetchExchange, Client as Urql } from '@urql/core'
import { persistedExchange } from '@urql/exchange-persisted'
import { sha256 } from '../graphql/support/requests.ts'
import { startTestApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'

/** A `fetch` that records each request and its answer: the method, whether the text was sent, and the status. */
function observedFetch() {
  const seen: string[] = []
  const observed: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    const sent = init?.method === 'POST' ? String(init.body) : new URL(String(input)).search.replace('?', '&')
    seen.push(`${init?.method ?? 'GET'} ${/"query":|&query=/.test(sent) ? 'text' : 'hash'} ${response.status}`)
    return response
  }
  return { observed, seen }
}

const query = gql`
  query Titles($n: Int) {
    posts(limit: $n) {
      title
    }
  }
`

type Ask = (url: string, fetch: typeof globalThis.fetch) => Promise<unknown>

const byApollo =
  (options: PersistedQueryLink.Options): Ask =>
  async (url, fetch) => {
    const link = new PersistedQueryLink({ ...options, useGETForHashedQueries: true })
    const uri = `${url}/graphql`
    const client = new ApolloClient({ cache: new InMemoryCache(), link: link.concat(new HttpLink({ uri, fetch })) })
    const { data } = await client.query({ query, variables: { n: 1 } })
    return data
  }

const byUrql: Ask = async (url, fetch) => {
  const exchanges = [persistedExchange({ preferGetForPersistedQueries: true }), fetchExchange]
  const client = new Urql({ url: `${url}/graphql`, fetch, exchanges, preferGetMethod: false })
  const { data, error } = await client.query(query, { n: 1 })
  assert.equal(error, undefined)
  return data
}

describe('Persisted queries of real clients', () => {
  for (const [name, ask] of [
    ['Apollo Client', byApollo({ sha256 })],
    ['urql', byUrql],
  ] as const) {
    it(`${name} sends the text once, and then only the hash`, async () => {
      await using app = await startTestApp({ RATE_LIMIT_MAX: '0' })
      const first = observedFetch()
      assert.deepEqual(await ask(app.url, first.observed), { posts: [] })
      const withoutMethods = first.seen.map(each => each.replace(/^\w+ /, ''))
      assert.deepEqual(withoutMethods, ['hash 400', 'text 200'])
      const next = observedFetch()
      assert.deepEqual(await ask(app.url, next.observed), { posts: [] })
      assert.deepEqual(next.seen, ['GET hash 200'])
    })
  }

  it('Apollo Client runs the documents of its generated manifest, and other documents are refused', async () => {
    using folder = temporaryFolder()
    const path = join(folder.path, 'manifest.json')
    const body = print(query)
    const operations = [{ id: 'titles-1', name: 'Titles', type: 'query', body }]
    writeFileSync(path, JSON.stringify({ format: 'apollo-persisted-query-manifest', version: 1, operations }))
    await using app = await startTestApp({ RATE_LIMIT_MAX: '0', TRUSTED_DOCUMENTS: path })
    const { observed, seen } = observedFetch()
    assert.deepEqual(await byApollo({ generateHash: () => 'titles-1' })(app.url, observed), { posts: [] })
    assert.deepEqual(seen, ['GET hash 200'])
    const refused = byApollo({ generateHash: () => 'titles-2' })(app.url, observed)
    await assert.rejects(refused, ({ errors }: { errors: { extensions: { code: string } }[] }) => {
      assert.equal(errors[0]?.extensions.code, 'DOCUMENT_NOT_TRUSTED')
      return true
    })
  })
})
