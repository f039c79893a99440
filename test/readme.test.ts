import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startTestApp } from './support/app.ts'
import { temporaryFolder } from './support/folder.ts'
import { freePort } from './support/ports.ts'
import { createMember, send } from './support/rest.ts'
import { waitUntil } from './support/wait.ts'

const readme = readFileSync(join(import.meta.dirname, '..', 'README.md'), 'utf8')

/** Runs a program of the page, and collects what it prints. */
function run(code: string) {
  const child = spawn(process.execPath, ['--input-type=module'], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(code)
  const program = { printed: '', ended: once(child, 'close'), [Symbol.dispose]: () => void child.kill() }
  child.stdout.setEncoding('utf8').on('data', text => {
    program.printed += text
  })
  return program
}

test('README: the example of subscriptions gets every post once and in order, including those from before it reconnected', async () => {
  using folder = temporaryFolder()
  const port = await freePort()
  const env = { DATABASE_URL: `sqlite:${join(folder.path, 'duet.db')}`, PORT: String(port), RATE_LIMIT_MAX: '0' }
  const section = readme.slice(readme.indexOf('## Subscriptions'))
  const [, code = ''] = /```js\n(.*?)```/s.exec(section) ?? []
  using program = run(code.replace('127.0.0.1:4000', `127.0.0.1:${port}`))
  const titles: string[] = []
  let written = 0
  const write = async (app: { readonly url: string }, token: string) => {
    titles.push(`post ${++written}`)
    const query = `mutation { createPost(title: "${titles.at(-1)}", content: "x") { id } }`
    assert.equal((await send(app, 'POST /graphql', { query }, token)).status, 200)
  }
  let token: string
  {
    await using app = await startTestApp(env)
    token = (await createMember(app)).token
    await waitUntil(async () => {
      await write(app, token)
      return program.printed !== ''
    })
    const [first = ''] = program.printed.split('\n')
    titles.splice(
      0,
      titles.findIndex(title => first.endsWith(title)),
    )
  }
  await using app = await startTestApp(env)
  for (let n = 0; n < 5; n++) await write(app, token)
  const received = () => program.printed.split('\n').flatMap(line => /post \d+$/.exec(line) ?? [])
  await waitUntil(() => received().includes(titles.at(-1) ?? ''))
  assert.deepEqual(received(), titles)
})

test('README: the example from order to tracking runs as printed and follows links only', async () => {
  await using app = await startTestApp({ DEMO_DATA: 'true' })
  const [, code = '', output = ''] = /```js\n(.*?)```\n\n```\n(.*?)```/s.exec(readme) ?? []
  assert.doesNotMatch(code, /\/(orders\/|payment|tracking)/)
  using program = run(code.replace('http://127.0.0.1:4000', app.url))
  assert.deepEqual([(await program.ended)[0], program.printed], [0, output])
})
