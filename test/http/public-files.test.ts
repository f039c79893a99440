import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Environment } from '../../src/config.ts'
import { startTestApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import { ask, sendRaw } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { assertRefusal } from '../support/refusal.ts'
import { shared } from '../support/shared.ts'

const index = '<!doctype html><title>Mine</title>'
const large = 'x'.repeat(3_000_000)

describe('The files of PUBLIC_DIR', () => {
  const folder = temporaryFolder()
  const site = join(folder.path, 'site')
  const start = (env: Environment = {}) => startTestApp({ RATE_LIMIT_MAX: '0', PUBLIC_DIR: site, ...env })

  before(() => {
    for (const path of ['sub', 'empty', '.git']) mkdirSync(join(site, path), { recursive: true })
    const files = { 'index.html': index, 'sub/index.html': 'sub', 'a.js': 'a', 'a b.css': 'b', 'large.txt': large }
    const hidden = { '.env': 'secret', '.git/config': 'secret', '../secret': 'secret', '../site-old': 'secret' }
    for (const [path, text] of Object.entries({ ...files, ...hidden })) writeFileSync(join(site, path), text)
    symlinkSync('index.html', join(site, 'inside.html'))
    symlinkSync('../secret', join(site, 'outside'))
    symlinkSync('../site-old', join(site, 'neighbour'))
    symlinkSync('..', join(site, 'above'))
  })
  const app = shared(() => start())
  after(() => folder[Symbol.dispose]())

  const get = (path: string, headers: Readonly<Record<string, string>> = {}) => ask(app.url + path, { headers })

  it('are served below /app/ with their types, and a folder without a slash at its end leads there', async () => {
    const expected = {
      '/app/': [index, 'text/html; charset=utf-8'],
      '/app/index.html?x=1': [index, 'text/html; charset=utf-8'],
      '/app/sub/': ['sub', 'text/html; charset=utf-8'],
      '/app/a.js': ['a', 'application/javascript; charset=utf-8'],
      '/app/a%20b.css': ['b', 'text/css; charset=utf-8'],
      '/app/inside.html': [index, 'text/html; charset=utf-8'],
      '/app/large.txt': [large, 'text/plain; charset=utf-8'],
    }
    for (const [path, [text, type]] of Object.entries(expected)) {
      const { status, headers, body } = await get(path)
      assert.deepEqual([status, headers.get('content-type')], [200, type], path)
      assert.ok(body === text, path)
      assert.equal(headers.get('x-content-type-options'), 'nosniff')
      assert.equal(headers.get('content-security-policy'), undefined) // a page decides itself what it may load
    }
    for (const [path, to] of Object.entries({ '/app': 'app/', '/app/sub': '/app/sub/' }))
      assert.equal((await get(path)).headers.get('location'), to)
  })

  it('are checked by browsers each time, which get them again only after a change', async () => {
    const { headers } = await get('/app/')
    assert.equal(headers.get('cache-control'), 'no-cache')
    const known = { 'if-none-match': headers.get('etag') ?? assert.fail() }
    assert.equal((await get('/app/', known)).status, 304)
    assert.equal((await get('/app/a.js', known)).status, 200)
    const head = await ask(`${app.url}/app/`, { method: 'HEAD' })
    assert.deepEqual([head.status, head.headers.get('content-length'), head.body], [200, String(index.length), ''])
    const part = await get('/app/large.txt', { range: 'bytes=1-3' })
    assert.deepEqual([part.status, part.body], [206, 'xxx'])
  })

  it('end at the folder: no name or link leads out of it, nor to a hidden file', async () => {
    const linked = ['outside', 'neighbour', 'above/secret', 'above/', 'above/site/.env']
    const hidden = [...linked, '.env', '.git/config', '%2eenv']
    const out = ['../secret', '..%2fsecret', '%2e%2e/secret', 'sub/../../secret', '..\\secret', '..%5csecret']
    const odd = ['%00', 'index.html%00.txt', '/index.html', './index.html', 'index.html/', 'INDEX.HTML']
    for (const path of [...hidden, ...out, ...odd, 'x'.repeat(9_000), 'absent', 'empty/', 'sub/absent.js']) {
      const line = `GET /app/${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`
      assertRefusal(await sendRaw(app.port, line), 404, 'Not found')
    }
    assert.ok(!app.logs.some(({ level }) => Number(level) >= 50))
  })

  it('are only files: a named pipe or a link to itself is absent, and pipes do not keep other files from being read', async () => {
    execFileSync('mkfifo', [join(site, 'pipe')])
    symlinkSync('loop', join(site, 'loop'))
    const pipes = Array.from({ length: 5 }, () => get('/app/pipe'))
    // A writer lets the threads go that wait in vain.
    const rescue = () => execFileSync('timeout', ['1', 'sh', '-c', ': > "$0"', join(site, 'pipe')])
    const timer = setTimeout(rescue, 2_000)
    for (const answer of [...(await Promise.all(pipes)), await get('/app/loop')])
      assertRefusal(answer, 404, 'Not found')
    clearTimeout(timer)
    assert.equal((await get('/app/a.js')).body, 'a')
  })

  it('are refused like everything else', async () => {
    const posted = await ask(`${app.url}/app/a.js`, { method: 'POST' })
    assertRefusal(posted, 405, 'Method not allowed')
    assert.equal(posted.headers.get('allow'), 'HEAD, GET, OPTIONS')
    assert.equal((await ask(`${app.url}/app/`, { method: 'OPTIONS' })).status, 204)
    assertRefusal(await get('/app/%zz'), 400, 'Malformed URL')
    assertRefusal(await get('/app/', { host: 'evil.example' }), 421)
    assertRefusal(await get('/app/', { 'if-match': '"x"' }), 412)
    assertRefusal(await get('/app/', { range: 'bytes=999-' }), 416)
    await using limited = await start({ RATE_LIMIT_MAX: '1', RATE_LIMIT_PATHS: '/app/a.js' })
    assert.equal((await ask(`${limited.url}/app/a.js`)).status, 200)
    assertRefusal(await ask(`${limited.url}/app/a.js`), 429)
    await limited.app.toggleMaintenance()
    assertRefusal(await ask(`${limited.url}/app/`), 503, 'Service under maintenance. Try again later.')
  })

  it('are served in production, with the client for them, and if the folder is a link itself', async () => {
    const link = join(folder.path, 'current')
    symlinkSync('site', link)
    await using production = await start({ NODE_ENV: 'production', TOKEN_KEYS: tokenKeys, PUBLIC_DIR: link })
    assert.equal((await ask(`${production.url}/app/`)).body, index)
    assert.equal((await ask(`${production.url}/client.js`)).status, 200)
    assertRefusal(await ask(`${production.url}/app/outside`), 404)
  })

  it('are absent without the folder', async () => {
    await using none = await start({ PUBLIC_DIR: join(folder.path, 'none') })
    for (const path of ['/app', '/app/', '/app/index.html']) assertRefusal(await ask(none.url + path), 404, 'Not found')
  })
})
