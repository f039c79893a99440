import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { getIntrospectionQuery } from 'graphql'
import { startTestApp } from '../support/app.ts'
import { assertRefused, get, query, read } from '../support/graphql.ts'
import { ask, sendRaw } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { assertRefusal } from '../support/refusal.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'
import { codeIn, textOf } from './html.ts'

const root = join(import.meta.dirname, '..', '..')
const built = join(root, 'console', 'dist')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const html = 'text/html; charset=utf-8'
const json = 'application/json; charset=utf-8'

function open(address: string, accept = browser) {
  return ask(address, { headers: { accept } })
}

describe('The pages', () => {
  const app = shared(() => startTestApp({ DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' }))

  it('run nothing inline, load nothing from other hosts, cannot be framed, and browsers revalidate them', async () => {
    const own = ['script', 'style', 'img', 'connect'].map(kind => `${kind}-src 'self'`)
    const none = ['default-src', 'base-uri', 'form-action', 'frame-ancestors'].map(kind => `${kind} 'none'`)
    const scripts = /<script(?! type="module" (crossorigin )?src="(?!\/)[\w./-]+"><\/script>)|<style| (on\w+|style)=/
    for (const path of ['/', '/console', '/docs', '/docs/api', '/docs/graphql', '/docs/how-to/add-a-field']) {
      const { headers, body } = await open(app.url + path)
      const shown = ['content-type', 'cache-control', 'referrer-policy'].map(name => headers.get(name))
      assert.deepEqual(shown, [html, 'no-cache', 'no-referrer'], path)
      const policy = headers.get('content-security-policy') ?? ''
      for (const part of [...own, ...none, "require-trusted-types-for 'script'"])
        assert.ok(policy.split('; ').includes(part), `${path}: ${part}`)
      assert.doesNotMatch(policy, /unsafe|https?:|data:|\*/)
      assert.doesNotMatch(body, scripts, path)
      if (path === '/') continue
      const known = { accept: browser, 'if-none-match': headers.get('etag') ?? '' }
      const again = await ask(app.url + path, { headers: known })
      assert.deepEqual([again.status, again.body], [304, ''], path)
      assert.equal(headers.get('vary'), 'Origin, Accept-Encoding')
    }
  })

  it('of folders are found with a slash at the end, too, and unknown ones are absent', async () => {
    for (const folder of ['docs', 'console']) {
      const { status, headers } = await ask(`${app.url}/${folder}/`)
      assert.deepEqual([status, headers.get('location')], [308, `../${folder}`])
    }
    const docs = ['nothing', 'README.md', 'graphql/', '%2e%2e/package.json', 'images/x', '..%2fpackage.json']
    const files = ['index.html', 'x.js', '..%2findex.html', 'console']
    for (const path of [...docs.map(path => `docs/${path}`), ...files.map(path => `console/${path}`)])
      assertRefusal(await ask(`${app.url}/${path}`), 404, 'Not found')
  })

  it('at the start: HTML for clients that prefer it, and JSON with the version and links that exist for all others, also at /api', async () => {
    const expected = {
      [browser]: html,
      '*/*': json,
      'text/html;q=0, */*': json,
      '': json,
    }
    for (const [accept, type] of Object.entries(expected)) {
      const { status, headers } = await open(app.url, accept)
      assert.deepEqual([status, headers.get('content-type')], [200, type], accept)
      assert.deepEqual([headers.get('vary'), headers.get('cache-control')], ['Origin, Accept', 'no-cache'])
    }
    const answer = await ask(app.url)
    const { links, ...others } = JSON.parse(answer.body) as { links: Record<string, string> }
    assert.deepEqual(others, { name: 'Duet', version })
    for (const name of ['graphql', 'docs', 'openapi', 'health']) assert.ok(name in links, name)
    for (const path of Object.values(links)) assert.equal((await open(app.url + path)).status, 200, path)
    for (const path of ['/api', '/api/']) {
      const { headers, body } = await open(app.url + path)
      assert.deepEqual([headers.get('content-type'), body], [json, answer.body])
    }
  })

  it('at the start name the service, link only to existing pages, and have the examples of the README with the address that the client used', async () => {
    const { body } = await open(app.url)
    for (const text of [`Duet ${version}`, 'SQLite', 'Demo data', 'ada@example.com', 'demo-password']) {
      assert.ok(body.includes(text), text)
    }
    const addresses = [...body.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, address = '']) => address)
    assert.ok(addresses.length > 8)
    const types: Readonly<Record<string, string>> = {
      'pages.css': 'text/css; charset=utf-8',
      'header.js': 'text/javascript; charset=utf-8',
      'reading.js': 'text/javascript; charset=utf-8',
      'favicon.ico': 'image/x-icon',
      'icon.svg': 'image/svg+xml',
    }
    for (const address of new Set(addresses)) {
      const { status, headers } = await open(new URL(address, `${app.url}/`).href)
      assert.equal(status, 200, address)
      if (types[address] !== undefined) assert.equal(headers.get('content-type'), types[address])
      assert.ok(!/^\w+:|^\//.test(address), `${address} is relative`)
    }
    const readme = readFileSync(join(root, 'README.md'), 'utf8')
    const examples = codeIn(body)
    assert.equal(examples.length, 2)
    for (const example of examples) {
      assert.ok(example.includes(`curl -s ${app.url}/`), example)
      assert.ok(readme.includes(`$ ${example.replace(app.url, 'http://127.0.0.1:4000')}\n`), example)
    }
  })

  it('at unknown addresses have links that lead back, and programs get JSON there', async () => {
    for (const path of ['/nowhere', '/users/1/friends', '/docs/nothing', '/graphql/x?y=/z', '/a//b']) {
      const { status, headers, body } = await open(app.url + path)
      assert.deepEqual([status, headers.get('content-type')], [404, html], path)
      assert.equal(headers.get('cache-control'), 'no-store')
      for (const [, address = ''] of body.matchAll(/<a href="([^"#]+)"/g)) {
        const { pathname } = new URL(address, `${app.url}/prefix${path}`)
        assert.match(pathname, /^\/prefix\/(console|graphql|docs|docs\/api)?$/)
      }
      for (const accept of ['*/*', 'application/json', 'application/json, text/html;q=0.9'])
        assertRefusal(await open(app.url + path, accept), 404, 'Not found')
    }
    assertRefusal(await open(`${app.url}/users/99`), 404, 'User not found') // a known address
    assertRefusal(await open(`${app.url}${'/x'.repeat(1000)}`), 404, 'Not found')
  })

  const filesOf = (page: string) => [...page.matchAll(/"\.?\/?(console\/[^"]+)"/g)].map(([, address = '']) => address)

  it('load the files of the console, which browsers keep forever, by HEAD and GET', async () => {
    const { body: page } = await open(`${app.url}/console`)
    const found = filesOf(page)
    assert.deepEqual(found.map(address => address.replace(/-[\w-]{8}\./, '.')).sort(), [
      'console/account.js', // also for the header of other pages
      'console/index.css',
      'console/index.js',
    ])
    for (const address of found) {
      const { status, headers, body } = await ask(`${app.url}/${address}`)
      assert.equal(status, 200, address)
      assert.equal(headers.get('cache-control'), 'public, max-age=31536000, immutable')
      const type = address.endsWith('.css') ? 'text/css' : 'text/javascript'
      assert.equal(headers.get('content-type'), `${type}; charset=utf-8`)
      assert.equal(body, readFileSync(join(built, address), 'utf8'))
      const head = await ask(`${app.url}/${address}`, { method: 'HEAD' })
      assert.deepEqual([head.status, head.body, head.headers.get('etag')], [200, '', headers.get('etag')])
      assertRefusal(await ask(`${app.url}/${address}`, { method: 'POST' }), 405, 'Method not allowed')
    }
    // Those that the console itself loads; other pages load other scripts.
    const scripts = filesOf(readFileSync(join(built, 'index.html'), 'utf8')).filter(name => name.endsWith('.js'))
    assert.equal(scripts.length, 2)
    const bytes = scripts.map(name => gzipSync(readFileSync(join(built, name))).length)
    assert.ok(bytes.reduce((sum, each) => sum + each, 0) <= 45_000, `${bytes} bytes, compressed`)
  })
})

test('without demo data, or without access to it, the page offers neither a login nor an example that fails', async () => {
  await using empty = await startTestApp()
  assert.doesNotMatch((await open(empty.url)).body, /demo|users\/1/i)
  await using enforced = await startTestApp({ DEMO_DATA: 'true', ACCESS_POLICY: 'enforced' })
  const { body } = await open(enforced.url)
  assert.match(body, /demo-password/)
  assert.doesNotMatch(body, /users\/1/)
})

test('a Host or X-Forwarded-Proto that cannot be trusted is not in the page', async () => {
  const enforced = { ACCESS_POLICY: 'enforced' } // any Host is served
  await using app = await startTestApp(enforced)
  await using behind = await startTestApp({ ...enforced, TRUST_PROXY: '127.0.0.1', LINK_PREFIX: '/shop' })
  const shown = async (port: number, host: string, more = '') => {
    const head = `GET / HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\n${more}\r\n`
    const { status, body } = await sendRaw(port, head)
    return status === 200 ? /curl -s (\S+)\/health/.exec(textOf(body))?.[1] : String(status)
  }
  const own = `http://127.0.0.1:${app.port}`
  for (const host of ['a"><script>', "a';id;'", '$(id)', 'a b', 'a/b', '-x', 'a:99999999', 'a'.repeat(300)]) {
    const address = await shown(app.port, host)
    assert.ok(address === own || address === '400', `${host}: ${address}`)
  }
  for (const host of ['duet.example.com', 'localhost:8080', '[::1]:4000'])
    assert.equal(await shown(app.port, host), `http://${host}`)
  assert.equal(await shown(app.port, 'a.test', 'X-Forwarded-Proto: https\r\n'), 'http://a.test')
  for (const scheme of ['https', 'http'])
    assert.equal(await shown(behind.port, 'a.test', `X-Forwarded-Proto: ${scheme}\r\n`), `${scheme}://a.test/shop`)
})

const usual = { NODE_ENV: 'production', TOKEN_KEYS: tokenKeys, RATE_LIMIT_MAX: '0' }

test('the console offers the demo login only if it works, and knows the policies for accounts, data and metrics, and the currency', async () => {
  const settings = async (env: Readonly<Record<string, string>>) => {
    await using app = await startTestApp(env)
    const { body } = await ask(`${app.url}/console`)
    return JSON.parse(textOf(/data-settings="([^"]*)"/.exec(body)?.[1] ?? assert.fail()))
  }
  const policies = { policy: 'open', signUp: 'open' }
  assert.deepEqual(await settings({}), { metrics: 'open', ...policies })
  const demoLogin = { email: 'ada@example.com', password: 'demo-password' }
  const demo = { DEMO_DATA: 'true', METRICS_TOKEN: 'secret' }
  assert.deepEqual(await settings(demo), { metrics: 'token', ...policies, demoLogin })
  const production = { ...usual, EXPLORERS: 'on', SIGN_UP: 'closed', CURRENCY: 'EUR', CURRENCY_DIGITS: '2' }
  const currency = { code: 'EUR', digits: 2 }
  assert.deepEqual(await settings(production), { metrics: 'off', policy: 'enforced', signUp: 'closed', currency })
})

const asksForSchema = [
  getIntrospectionQuery(),
  '{ __schema { queryType { name } } }',
  '{ __type(name: "User") { name } }',
  '{ ...F } fragment F on Query { a: __schema { queryType { name } } }',
]

test('in production introspection is refused by every transport, and __typename works', async () => {
  await using app = await startTestApp(usual)
  using client = await SocketClient.connect(app)
  for (const text of asksForSchema) {
    for (const refused of [await query(app, text), await get(app, { query: text })]) {
      assertRefused(refused, 400, 'GRAPHQL_VALIDATION_FAILED', /introspection has been disabled/i)
    }
    const { errors } = await client.ask(text)
    assert.equal(errors?.[0]?.extensions.code, 'GRAPHQL_VALIDATION_FAILED')
  }
  const data = { __typename: 'Query', posts: [] }
  assert.deepEqual(await read(app, '{ __typename posts { __typename } }'), data)
})

test('in production there are no pages, no links to pages, and a browser gets the same answer as any client', async () => {
  await using app = await startTestApp({ ...usual, LINK_PREFIX: '/shop' })
  const pages = ['/docs', '/docs/', '/docs/graphql', '/docs/search.json', '/console', '/nowhere']
  for (const path of [...pages, '/pages.css', '/header.js', '/reading.js', '/try.js', '/icon.svg'])
    assertRefusal(await open(app.url + path), 404, 'Not found')
  const home = await open(app.url)
  assert.equal(home.headers.get('content-type'), json)
  const links = { graphql: '/shop/graphql', openapi: '/shop/openapi.json', health: '/shop/health/ready' }
  assert.deepEqual(JSON.parse(home.body).links, links)
  const answer = await open(`${app.url}/graphql?query={__typename}`)
  assert.deepEqual([answer.status, answer.body], [200, '{"data":{"__typename":"Query"}}'])
  assertRefused(await open(`${app.url}/graphql`), 400, 'BAD_REQUEST')
  assert.equal((await ask(`${app.url}/openapi.json`)).status, 200)
})

test('in production with EXPLORERS and INTROSPECTION on there are pages and introspection', async () => {
  await using app = await startTestApp({ ...usual, EXPLORERS: 'on', INTROSPECTION: 'on' })
  for (const text of asksForSchema) await read(app, text)
  for (const path of ['/docs', '/docs/api', '/graphql', '/console']) {
    const { status, headers } = await open(app.url + path)
    assert.deepEqual([status, headers.get('content-type')], [200, html])
  }
})
