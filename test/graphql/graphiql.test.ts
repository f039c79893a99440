import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { notInQuick } from '../support/form.ts'
import { assertRefused, read } from '../support/graphql.ts'
import { ask } from '../support/http.ts'
import { logIn } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'

describe('GET /graphql from a browser', () => {
  const app = shared(() => startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0' }))

  const show = (headers: Readonly<Record<string, string>> = {}, search = '') =>
    ask(`${app.url}/graphql${search}`, { headers: { accept: browser, 'accept-encoding': 'identity', ...headers } })

  /** The files that the page loads: scripts, styles, and the scripts of its workers. */
  async function addresses(): Promise<readonly string[]> {
    const { body } = await show()
    return [...body.matchAll(/"(graphiql\/[^"]+)"/g)].map(([, address = '']) => address)
  }

  it('shows the page for any query string', async () => {
    for (const search of ['', '?query={__typename}', '?query=mutation{likePost(id:1){id}}', '?variables={']) {
      const { status, headers, body } = await show({}, search)
      assert.deepEqual([status, headers.get('content-type')], [200, 'text/html; charset=utf-8'])
      assert.match(body, /^<!doctype html>/i)
      assert.match(body, /<title>GraphiQL · Duet<\/title>/)
      assert.match(body, /<meta name="viewport" content="width=device-width, initial-scale=1">/)
    }
  })

  it('shows it only to clients that prefer HTML: others get their answer, or 401 with a bad token', async () => {
    const json = await show({ accept: '*/*' }, '?query={__typename}')
    assert.equal(json.body, '{"data":{"__typename":"Query"}}')
    assertRefused(await show({ accept: 'application/json' }), 400, 'BAD_REQUEST')
    assertRefused(await show({ authorization: 'Bearer bad' }), 401, 'UNAUTHENTICATED')
    const posted = await ask(`${app.url}/graphql`, { method: 'POST', headers: { accept: browser } })
    assertRefused(posted, 400, 'BAD_REQUEST')
  })

  it('can be cached by its ETag, for the type and the encoding that the client accepts, and is revalidated', async () => {
    const { headers } = await show()
    const tag = headers.get('etag') ?? ''
    assert.match(tag, /^"[\w-]{22}"$/)
    assert.equal(headers.get('cache-control'), 'no-cache')
    assert.equal(headers.get('vary'), 'Origin, Accept, Accept-Encoding')
    const known = await show({ 'if-none-match': tag })
    assert.deepEqual([known.status, known.body, known.headers.get('etag')], [304, '', tag])
    assert.equal((await show({ 'if-none-match': tag, 'accept-encoding': 'gzip' })).status, 200)
    const encodings = { 'gzip;q=0': undefined, 'br, gzip ; q=0.0, deflate': undefined, 'br;q=0, gzip;q=0.5': 'gzip' }
    for (const [accepted, encoding] of Object.entries(encodings))
      assert.equal((await show({ 'accept-encoding': accepted })).headers.get('content-encoding'), encoding, accepted)
  })

  it('loads files that browsers keep for a year if their address has a version, and check otherwise, compressed', {
    skip: notInQuick,
  }, async () => {
    const found = await addresses()
    assert.equal(found.length, 7)
    let bytes = 0
    for (const address of found) {
      const get = (headers: Readonly<Record<string, string>>) => ask(`${app.url}/${address}`, { headers })
      const { headers, body } = await get({ 'accept-encoding': 'gzip, deflate, br, zstd' })
      const kept = /-\d+\.\d+\.\d+\./.test(address) ? 'public, max-age=31536000, immutable' : 'no-cache'
      const type = address.endsWith('.css') ? 'text/css' : 'text/javascript'
      assert.equal(headers.get('cache-control'), kept, address)
      assert.equal(headers.get('content-type'), `${type}; charset=utf-8`)
      assert.equal(headers.get('content-encoding'), 'gzip', address)
      assert.match(headers.get('vary') ?? '', /accept-encoding/i)
      bytes += Number(headers.get('content-length'))
      const plain = await get({ 'accept-encoding': 'identity' })
      assert.ok(!plain.headers.has('content-encoding') && plain.body === body, address)
      assert.notEqual(headers.get('etag'), plain.headers.get('etag'))
      const tags = `"other", W/${plain.headers.get('etag')}`
      const known = await get({ 'accept-encoding': 'identity', 'if-none-match': tags })
      assert.deepEqual([known.status, known.body], [304, ''])
    }
    assert.ok(bytes > 100_000 && bytes < 3_000_000, `${bytes} bytes for the whole page`)
    for (const path of ['graphiql', 'graphiql/', 'graphiql/page.ts', 'graphiql/..%2frequest.ts'])
      assert.equal((await ask(`${app.url}/${path}`)).status, 404, path)
  })

  it('runs only scripts of its own origin and loads nothing from other hosts', async () => {
    const { headers, body } = await show()
    const policy = (headers.get('content-security-policy') ?? '').split('; ')
    const own = ['script-src', 'worker-src', 'connect-src'].map(name => `${name} 'self'`)
    const none = ['default-src', 'base-uri', 'form-action', 'frame-ancestors'].map(name => `${name} 'none'`)
    for (const rule of [...own, ...none, "img-src 'self' data:"]) assert.ok(policy.includes(rule), rule)
    assert.doesNotMatch(body, /\/\/|<script>|\son\w+=/)
    for (const address of await addresses()) {
      const { body: file } = await ask(`${app.url}/${address}`)
      if (address.endsWith('.css')) assert.doesNotMatch(file, /@import|url\((?!["']?data:)/)
      else assert.doesNotMatch(file, /\bimport\s*\(\s*["'`]https?:|\bfrom\s*["']https?:|importScripts\(\s*["'`]https?:/)
    }
  })

  it('has examples that all work on the demo data', async () => {
    const { body } = await ask(`${app.url}/graphiql/start.js`)
    const defaultQuery = /const examples = `([^`]+)`/.exec(body)?.[1] ?? assert.fail()
    await using demo = await startTestAppOn(sqlite, { DEMO_DATA: 'true' })
    const token = await logIn(demo, 'ada@example.com', 'demo-password')
    const names = [...defaultQuery.matchAll(/^(?:query|mutation) (\w+)/gm)].map(([, name]) => name)
    assert.ok(names.length >= 5)
    for (const operationName of names) {
      const data = await read(demo, defaultQuery, { operationName, token })
      assert.ok(!Object.values(data).includes(null), operationName)
    }
  })
})
