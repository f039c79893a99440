import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { build, type Rollup } from 'vite'
import { buildClient } from '../../client/build.ts'
import { schemaTypes } from '../../client/generate-schema.ts'
import { startTestApp } from '../support/app.ts'
import { browserMissing, openPage } from '../support/browser.ts'
import { temporaryFolder } from '../support/folder.ts'
import { notInQuick } from '../support/form.ts'
import { sharedBrowser } from '../support/shared-browser.ts'

const client = join(import.meta.dirname, '..', '..', 'client')
const dist = join(client, 'dist')

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
  assert.ok(
    readFileSync(join(client, 'src', 'schema.ts'), 'utf8') === (await schemaTypes()),
    'client/src/schema.ts is out of date',
  )
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
  assert.deepEqual(partsOf(readFileSync(join(dist, 'duet-client.js'), 'utf8')), Object.keys(parts))
  assert.deepEqual(partsOf(result?.output[0].code ?? assert.fail()), ['session'])
})

test('README: a page of another origin uses the client without a build', {
  skip: browserMissing || notInQuick,
}, async () => {
  const readme = readFileSync(join(client, 'README.md'), 'utf8')
  const [, html = assert.fail()] = /```html\n(.*?)```/s.exec(readme) ?? []
  await using app = await startTestApp({ DEMO_DATA: 'true' })
  const content = `<!doctype html><body>${html.replaceAll('http://127.0.0.1:4000', app.url)}</body>`
  const other = createServer((_request, response) => response.setHeader('content-type', 'text/html').end(content))
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = other.address() as AddressInfo
    await using opened = await openPage(await sharedBrowser(), `http://127.0.0.1:${port}/`)
    const { page } = opened
    await page.getByText(' / ').waitFor()
    assert.match(await page.innerText('body'), /^[^/]+ \/ [^/]+ \/ [^/]+$/)
  } finally {
    other.close()
  }
})
