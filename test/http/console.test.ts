import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startTestApp } from '../support/app.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { assertRefusal } from '../support/refusal.ts'
import { shared } from '../support/shared.ts'

const built = join(import.meta.dirname, '../../console/dist')

describe('GET /console', () => {
  const app = shared(() => startTestApp({ RATE_LIMIT_MAX: '0' }))

  async function addresses(): Promise<readonly string[]> {
    const { body } = await ask(`${app.url}/console`)
    return [...body.matchAll(/"(\.\/console\/[^"]+)"/g)].map(([, address = '']) => address)
  }

  it('is a page that browsers revalidate', async () => {
    const { status, headers, body } = await ask(`${app.url}/console`)
    assert.equal(status, 200)
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8')
    assert.equal(headers.get('cache-control'), 'no-cache')
    assert.match(body, /<title>Duet console<\/title>/)
    const known = await ask(`${app.url}/console`, { headers: { 'if-none-match': headers.get('etag') ?? '' } })
    assert.deepEqual([known.status, known.body], [304, ''])
    assert.equal(headers.get('vary'), 'Origin, Accept-Encoding')
    const other = { 'if-none-match': headers.get('etag') ?? '', 'accept-encoding': 'identity' }
    const plain = await ask(`${app.url}/console`, { headers: other })
    assert.deepEqual([plain.status, plain.headers.has('content-encoding')], [200, false])
  })

  it('loads its scripts and one style sheet, which browsers keep', async () => {
    const found = await addresses()
    assert.deepEqual(found.map(address => address.replace(/-[\w-]{8}\./, '.')).sort(), [
      './console/account.js', // also for the header of other pages
      './console/index.css',
      './console/index.js',
    ])
    for (const address of found) {
      const { status, headers, body } = await ask(new URL(address, `${app.url}/console`).href)
      assert.equal(status, 200, address)
      assert.equal(headers.get('cache-control'), 'public, max-age=31536000, immutable')
      const type = address.endsWith('.css') ? 'text/css' : 'text/javascript'
      assert.equal(headers.get('content-type'), `${type}; charset=utf-8`)
      assert.equal(body, readFileSync(join(built, address), 'utf8'))
    }
  })

  it('is small: its script has at most 45 KB, compressed', async () => {
    const page = readFileSync(join(built, 'index.html'), 'utf8') // other pages load other scripts
    const scripts = [...page.matchAll(/console\/[\w-]+\.js/g)].map(([name]) => name)
    assert.equal(scripts.length, 2)
    const bytes = scripts.map(name => gzipSync(readFileSync(join(built, name))).length)
    assert.ok(bytes.reduce((sum, each) => sum + each, 0) <= 45_000, `${bytes} bytes`)
  })

  it('runs nothing inline, loads nothing from other hosts and cannot be framed', async () => {
    const { headers, body } = await ask(`${app.url}/console`)
    const policy = headers.get('content-security-policy') ?? ''
    const own = ['script', 'style', 'img', 'connect'].map(kind => `${kind}-src 'self'`)
    const none = ['default-src', 'base-uri', 'form-action', 'frame-ancestors'].map(kind => `${kind} 'none'`)
    for (const part of [...own, ...none, "require-trusted-types-for 'script'"])
      assert.ok(policy.split('; ').includes(part), part)
    assert.doesNotMatch(policy, /unsafe|https?:|\*/)
    assert.doesNotMatch(body, /\/\/|<script>|<style|\s(on\w+|style)=/)
  })

  it('answers HEAD like GET without a body, sends /console/ to /console, and refuses other methods and files', async () => {
    for (const path of ['/console', ...(await addresses()).map(address => new URL(address, 'http://x').pathname)]) {
      const [head, get] = [await ask(app.url + path, { method: 'HEAD' }), await ask(app.url + path)]
      assert.deepEqual([head.status, head.body], [200, ''])
      assert.equal(head.headers.get('etag'), get.headers.get('etag'))
      const posted = await ask(app.url + path, { method: 'POST' })
      assertRefusal(posted, 405, 'Method not allowed')
    }
    const moved = await ask(`${app.url}/console/`)
    assert.deepEqual([moved.status, moved.headers.get('location')], [308, '../console'])
    for (const path of ['/console/index.html', '/console/x.js', '/console/..%2findex.html', '/console/console'])
      assertRefusal(await ask(app.url + path), 404, 'Not found')
  })

  it('offers the demo login only if it works, and knows the policies for accounts, data and metrics, and the currency', async () => {
    const settings = async (env: Readonly<Record<string, string>>) => {
      await using other = await startTestApp(env)
      const { body } = await ask(`${other.url}/console`)
      const text = /data-settings="([^"]*)"/.exec(body)?.[1] ?? assert.fail()
      return JSON.parse(text.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))))
    }
    const policies = { policy: 'open', signUp: 'open' }
    assert.deepEqual(await settings({}), { metrics: 'open', ...policies })
    const demoLogin = { email: 'ada@example.com', password: 'demo-password' }
    const demo = { DEMO_DATA: 'true', METRICS_TOKEN: 'secret' }
    assert.deepEqual(await settings(demo), { metrics: 'token', ...policies, demoLogin })
    const usual = { NODE_ENV: 'production', EXPLORERS: 'on', TOKEN_KEYS: tokenKeys }
    const production = { ...usual, SIGN_UP: 'closed', CURRENCY: 'EUR', CURRENCY_DIGITS: '2' }
    const currency = { code: 'EUR', digits: 2 }
    assert.deepEqual(await settings(production), { metrics: 'off', policy: 'enforced', signUp: 'closed', currency })
  })
})
