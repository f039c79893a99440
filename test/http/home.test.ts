import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { ask, sendRaw } from '../support/http.ts'
import { codeIn, textOf } from './html.ts'

const root = join(import.meta.dirname, '..', '..')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const html = 'text/html; charset=utf-8'
const json = 'application/json; charset=utf-8'

function home(url: string, accept?: string) {
  return ask(`${url}/`, { headers: accept === undefined ? {} : { accept } })
}

test('GET / is a page for clients that prefer HTML, and JSON with the version and links that exist for all others, also at /api', async () => {
  await using app = await startTestApp()
  const expected = {
    [browser]: html,
    'text/html': html,
    'text/*': html,
    'application/json;q=0.9, text/html': html,
    '*/*;q=0.1, text/html;q=0.2': html,
    '*/*': json,
    'application/json': json,
    'application/json, text/html;q=0.9': json,
    'text/html;q=0, */*': json,
    'image/png': json,
    '': json,
  }
  for (const [accept, type] of Object.entries(expected)) {
    const { status, headers } = await home(app.url, accept)
    assert.deepEqual([status, headers.get('content-type')], [200, type], accept)
    assert.deepEqual([headers.get('vary'), headers.get('cache-control')], ['Origin, Accept', 'no-cache'])
  }
  const answer = await home(app.url)
  const { links, ...others } = JSON.parse(answer.body) as { links: Record<string, string> }
  assert.deepEqual(others, { name: 'Duet', version })
  for (const name of ['graphql', 'docs', 'openapi', 'health']) assert.ok(name in links, name)
  for (const path of Object.values(links)) {
    const { status } = await ask(app.url + path, { headers: { accept: browser } })
    assert.equal(status, 200, path)
  }
  for (const path of ['/api', '/api/']) {
    const { headers, body } = await ask(app.url + path, { headers: { accept: browser } })
    assert.deepEqual([headers.get('content-type'), body], [json, answer.body])
  }
})

test('the home page names the service, loads only its own files, links only to existing pages, and has the examples of the README with the address that the client used', async () => {
  await using app = await startTestApp({ DEMO_DATA: 'true' })
  const { headers, body } = await home(app.url, browser)
  for (const text of [`Duet ${version}`, 'SQLite', 'Demo data', 'ada@example.com', 'demo-password']) {
    assert.ok(body.includes(text), text)
  }
  const policy = headers.get('content-security-policy') ?? ''
  assert.match(
    policy,
    /^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; req/,
  )
  assert.doesNotMatch(policy, /unsafe|https?:|data:|\*/)
  assert.doesNotMatch(body, /<script(?! type="module" src="(header|reading)\.js"><\/script>)|<style| style=| on\w+=/)
  const addresses = [...body.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, address = '']) => address)
  assert.ok(addresses.length > 8)
  const types = new Map([
    ['pages.css', 'text/css; charset=utf-8'],
    ['header.js', 'text/javascript; charset=utf-8'],
    ['reading.js', 'text/javascript; charset=utf-8'],
    ['favicon.ico', 'image/x-icon'],
    ['icon.svg', 'image/svg+xml'],
  ])
  for (const address of new Set(addresses)) {
    const answer = await ask(new URL(address, `${app.url}/`).href, { headers: { accept: browser } })
    assert.equal(answer.status, 200, address)
    const type = types.get(address)
    if (type !== undefined) assert.equal(answer.headers.get('content-type'), type)
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

test('without demo data, or without access to it, the page offers neither a login nor an example that fails', async () => {
  await using empty = await startTestApp()
  const { body } = await home(empty.url, browser)
  assert.doesNotMatch(body, /demo|users\/1/i)
  await using enforced = await startTestApp({ DEMO_DATA: 'true', ACCESS_POLICY: 'enforced' })
  const page = await home(enforced.url, browser)
  assert.match(page.body, /demo-password/)
  assert.doesNotMatch(page.body, /users\/1/)
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
  const forwarded = 'X-Forwarded-Proto: https\r\n'
  assert.equal(await shown(app.port, 'a.example.com', forwarded), 'http://a.example.com')
  assert.equal(await shown(behind.port, 'a.example.com', forwarded), 'https://a.example.com/shop')
})
