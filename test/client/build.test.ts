import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { build, type Rollup } from 'vite'
import { buildClient } from '../../client/build.ts'
import { schemaTypes } from '../../client/generate-schema.ts'
import { startTestApp } from '../support/app.ts'
import { browserMissing, openPage } from '../support/browser.ts'
import { temporaryFolder } from '../support/folder.ts'
import { notInQuick } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { listen } from '../support/ports.ts'
import { assertRefusal } from '../support/refusal.ts'
import { sharedBrowser } from '../support/shared-browser.ts'

const client = join(import.meta.dirname, '..', '..', 'client')
const dist = join(client, 'dist')
const script = readFileSync(join(dist, 'duet-client.js'), 'utf8')

test('client/dist equals a new build of the sources; `npm run build` writes it', { skip: notInQuick }, async () => {
  using folder = temporaryFolder()
  await buildClient(folder.path)
  const names = readdirSync(folder.path).sort()
  assert.deepEqual(readdirSync(dist).sort(), names)
  for (const name of names) {
    const [built, committed] = [folder.path, dist].map(each => readFileSync(join(each, name), 'utf8'))
    assert.ok(built === committed, `${name} is old: run \`npm run build\``)
  }
})

test('client/src/schema.ts has the types of api/schema.graphql; `npm run build` writes it', async () => {
  const isCurrent = readFileSync(join(client, 'src', 'schema.ts'), 'utf8') === (await schemaTypes())
  assert.ok(isCurrent, 'client/src/schema.ts is out of date')
})

test('a bundle that uses only users has no code for sockets, payments and selections', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'users.js')
  writeFileSync(
    path,
    `import { connect, users } from '${join(dist, 'duet-client.js')}'\nexport default users(connect({ url: 'http://x' }))`,
  )
  const lib = { entry: path, formats: ['es' as const] }
  const settings = { root: folder.path, configFile: false as const, logLevel: 'silent' as const }
  const [result] = (await build({ ...settings, build: { write: false, lib } })) as Rollup.RollupOutput[]
  const parts = {
    sockets: /graphql-transport-ws/,
    payments: /idempotency-key/,
    session: /\/tokens/,
    selections: /neither true/,
  }
  const partsOf = (code: string) => Object.entries(parts).flatMap(([part, text]) => (text.test(code) ? [part] : []))
  assert.deepEqual(partsOf(script), Object.keys(parts))
  assert.deepEqual(partsOf(result?.output[0].code ?? assert.fail()), ['session'])
})

test('the client is one small module that imports nothing', () => {
  assert.doesNotMatch(script, /\bimport\b/)
  const bytes = gzipSync(script).length
  assert.ok(bytes <= 12 * 1024, `${bytes} bytes`)
  const { dependencies } = JSON.parse(readFileSync(join(client, 'package.json'), 'utf8'))
  assert.equal(dependencies, undefined)
})

test('GET /client.js is the client for pages of any allowed origin, and browsers revalidate it', async () => {
  await using app = await startTestApp({ RATE_LIMIT_MAX: '0', CORS_ORIGINS: '*' })
  const headers = { origin: 'https://app.example' }
  const served = await ask(`${app.url}/client.js`, { headers })
  assert.deepEqual([served.status, served.body], [200, script])
  assert.equal(served.headers.get('content-type'), 'text/javascript; charset=utf-8')
  assert.equal(served.headers.get('cache-control'), 'no-cache')
  assert.equal(served.headers.get('access-control-allow-origin'), '*')
  const known = { ...headers, 'if-none-match': served.headers.get('etag') ?? assert.fail() }
  assert.equal((await ask(`${app.url}/client.js`, { headers: known })).status, 304)
  for (const path of ['/client', '/client/dist/duet-client.js', '/index.d.ts', '/client/package.json']) {
    assertRefusal(await ask(app.url + path), 404, 'Not found')
  }
})

test('with EXPLORERS=off there is no /client.js', async () => {
  await using app = await startTestApp({ EXPLORERS: 'off' })
  assertRefusal(await ask(`${app.url}/client.js`), 404, 'Not found')
})

test('README: a page of another origin uses the client without a build', {
  skip: browserMissing || notInQuick,
}, async () => {
  const readme = readFileSync(join(client, 'README.md'), 'utf8')
  const [, html = assert.fail()] = /```html\n(.*?)```/s.exec(readme) ?? []
  await using app = await startTestApp({ DEMO_DATA: 'true' })
  const content = `<!doctype html><body>${html.replaceAll('http://127.0.0.1:4000', app.url)}</body>`
  await using other = createServer((_, response) => response.setHeader('content-type', 'text/html').end(content))
  await using opened = await openPage(await sharedBrowser(), `http://127.0.0.1:${await listen(other)}/`)
  const { page } = opened
  await page.getByText(' / ').waitFor()
  assert.match(await page.innerText('body'), /^[^/]+ \/ [^/]+ \/ [^/]+$/)
})
