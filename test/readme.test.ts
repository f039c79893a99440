import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startTestApp } from './support/app.ts'

const readme = readFileSync(join(import.meta.dirname, '..', 'README.md'), 'utf8')

/** A code block of the page, and its printed output. */
function exampleUnder(title: string): { code: string; output: string } {
  const section = readme.slice(readme.indexOf(`### ${title}`))
  const [, code = '', output = ''] = /```js\n(.*?)```\n\n```\n(.*?)```/s.exec(section) ?? []
  assert.ok(code !== '' && output !== '', `README.md has no example under ${title}`)
  return { code, output }
}

async function run(code: string): Promise<string> {
  const child = spawn(process.execPath, ['--input-type=module'], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(code)
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    printed += text
  })
  const [status] = await once(child, 'close')
  assert.equal(status, 0)
  return printed
}

test('README: of several runs of the example of lost updates at once none is lost', async () => {
  await using app = await startTestApp({ DEMO_DATA: 'true' })
  const { code, output } = exampleUnder('Caching and lost updates')
  const runs = await Promise.all(Array.from({ length: 3 }, () => run(code.replace('http://127.0.0.1:4000', app.url))))
  assert.deepEqual(runs.sort(), [output, output.replace('37', '38'), output.replace('37', '39')])
})

test('README: the example from order to tracking runs as printed and follows links only', async () => {
  await using app = await startTestApp({ DEMO_DATA: 'true' })
  const { code, output } = exampleUnder('Orders: follow the links')
  assert.doesNotMatch(code, /\/(orders\/|payment|tracking)/)
  assert.equal(await run(code.replace('http://127.0.0.1:4000', app.url)), output)
})
