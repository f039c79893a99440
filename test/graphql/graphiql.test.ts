import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { startTestAppOn, type TestApp } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { assertRefused, read } from '../support/graphql.ts'
import { ask, parseResponse, RawConnection } from '../support/http.ts'
import { logIn } from '../support/rest.ts'

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'

describe('GET /graphql from a browser', () => {
  let app: TestApp
  before(async () => {
    app = await startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0' })
  })
  after(() => app[Symbol.asyncDispose]())

  const show = (headers: Readonly<Record<string, string>> = {}, search = '') =>
    ask(`${app.url}/graphql${search}`, {
      headers: { accept: browser, 'accept-encoding': 'identity', ...headers },
    })

  it('shows the page for any query string', async () => {
    for (const search of ['', '?query={__typename}', '?query=mutation{likePost(id:1){id}}', '?variables={']) {
      const { status, headers, body } = await show({}, search)
      assert.equal(status, 200)
      assert.equal(headers.get('content-type'), 'text/html; charset=utf-8')
      assert.match(body, /^<!doctype html>/i)
      assert.match(body, /<title>Duet: GraphQL<\/title>/)
    }
  })

  it('shows it only to clients that prefer HTML: others get their answer, or 401 with a bad token', async () => {
    const json = await show({ accept: '*/*' }, '?query={__typename}')
    assert.equal(json.body, '{"data":{"__typename":"Query"}}')
    assertRefused(await show({ accept: 'application/json' }), 400, 'BAD_REQUEST')
    assertRefused(await show({ authorization: 'Bearer bad' }), 401, 'UNAUTHENTICATED')
    const posted = await ask(`${app.url}/graphql`, { method: 'POST', headers: { accept: browser }, body: null })
    assertRefused(posted, 400, 'BAD_REQUEST')
  })

  it('can be cached by its ETag, and is revalidated', async () => {
    const { headers } = await show()
    const tag = headers.get('etag') ?? ''
    assert.match(tag, /^"[\w-]{22}"$/)
    assert.equal(headers.get('cache-control'), 'no-cache')
    assert.match(headers.get('vary') ?? '', /accept, accept-encoding/i)
    const known = await show({ 'if-none-match': tag })
    assert.deepEqual([known.status, known.body, known.headers.get('etag')], [304, '', tag])
    assert.equal((await show({ 'if-none-match': '"another"' })).status, 200)
  })

  it('is compressed if the client accepts that', async () => {
    const { body } = await show()
    using connection = await RawConnection.open(app.port)
    connection.write(
      `GET /graphql HTTP/1.1\r\nHost: x\r\nAccept: ${browser}\r\nAccept-Encoding: gzip, br\r\nConnection: close\r\n\r\n`,
    )
    const raw = await connection.closed()
    const { response } = parseResponse(raw) ?? assert.fail()
    assert.equal(response.headers.get('content-encoding'), 'gzip')
    const bytes = Buffer.from(raw.slice(raw.indexOf('\r\n\r\n') + 4), 'latin1')
    assert.equal(gunzipSync(bytes).toString('utf8'), body)
    assert.ok(bytes.length < body.length / 2)
  })

  it('runs only its own scripts and loads nothing from other hosts', async () => {
    const { headers, body } = await show()
    const policy = new Map(
      (headers.get('content-security-policy') ?? '').split('; ').map(each => {
        const [name = '', ...sources] = each.split(' ')
        return [name, sources]
      }),
    )
    const scripts = [...body.matchAll(/<script\b([^>]*)>(.*?)<\/script>/gs)]
    assert.ok(scripts.length > 0)
    assert.deepEqual(
      policy.get('script-src'),
      scripts.map(([, , script = '']) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`),
    )
    assert.deepEqual(policy.get('default-src'), ["'none'"])
    assert.deepEqual(policy.get('connect-src'), ["'self'", 'ws:', 'wss:'])
    for (const name of ['base-uri', 'form-action', 'frame-ancestors']) assert.deepEqual(policy.get(name), ["'none'"])
    // What the page itself asks a browser to load: attributes of its elements, and imports in its styles.
    const markup = body.replace(/<script\b[^>]*>.*?<\/script>/gs, '').replace(/<!--.*?-->/gs, '')
    const loaded = [...markup.matchAll(/\b(?:src|href|srcset|action|data)\s*=\s*["']?([^"'\s>]+)/gi)].map(
      ([, address]) => address,
    )
    assert.deepEqual(
      loaded.filter(address => !address?.startsWith('data:')),
      [],
    )
    assert.doesNotMatch(markup, /@import|url\(\s*["']?(?:https?:)?\/\//i)
    for (const [, attributes = '', script = ''] of scripts) {
      assert.doesNotMatch(attributes, /\bsrc\b/)
      assert.doesNotMatch(script, /\bimport\s*\(\s*["'`]https?:|\bfrom\s*["']https?:|importScripts\(\s*["'`]https?:/)
    }
  })

  it('contains examples that all work on the demo data', async () => {
    const { body } = await show()
    const written = body.slice(body.lastIndexOf('renderYogaGraphiQL('))
    const { endpoint, defaultQuery } = JSON.parse(/^\s*(\{.*\}),$/m.exec(written)?.[1] ?? assert.fail())
    assert.equal(endpoint, '/graphql')
    await using demo = await startTestAppOn(sqlite, { DEMO_DATA: 'true' })
    const token = await logIn(demo, 'ada@example.com', 'demo-password')
    const names = [...defaultQuery.matchAll(/^(?:query|mutation) (\w+)/gm)].map(([, name]) => name)
    assert.ok(names.length >= 5)
    for (const operationName of names) {
      const data = await read(demo, defaultQuery, { operationName, token })
      assert.ok(
        Object.values(data).every(value => value !== null),
        operationName,
      )
    }
  })
})
