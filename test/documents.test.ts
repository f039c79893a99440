import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { startTestApp } from './support/app.ts'
import { temporaryFolder } from './support/folder.ts'
import type { Served } from './support/http.ts'
import { freePort } from './support/ports.ts'
import { createMember, send } from './support/rest.ts'
import { waitUntil } from './support/wait.ts'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')

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
  const write = async (app: Served, token: string) => {
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
    const unheard = titles.findIndex(title => first.endsWith(title))
    titles.splice(0, unheard)
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

test('CONTRIBUTING.md has a test for HTTP, GraphQL and subscriptions, each under 25 lines, and they pass', async () => {
  const page = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')
  const examples = Array.from(page.matchAll(/^```ts\n(\/\/ (\S+)\n.*?)^```/gms), ([, code = '', file = '']) => [
    file,
    code,
  ])
  const files = examples.map(([file = '']) => file)
  assert.deepEqual(files.map(dirname), ['test/rest', 'test/graphql', 'test/subscriptions'])
  using folder = temporaryFolder()
  mkdirSync(join(folder.path, 'test'))
  symlinkSync(join(import.meta.dirname, 'support'), join(folder.path, 'test', 'support'))
  for (const [file = '', code = ''] of examples) {
    assert.ok(code.split('\n').length <= 25, file)
    mkdirSync(join(folder.path, dirname(file)))
    writeFileSync(join(folder.path, file), code)
  }
  // With this variable, Node does not run tests that a test starts.
  const { NODE_TEST_CONTEXT, ...env } = process.env
  const options = { cwd: folder.path, env }
  const tests = promisify(execFile)(process.execPath, ['--test', '--test-isolation=none', ...files], options)
  const { stdout } = await tests.catch(failure => assert.fail(`${failure.stdout}${failure.stderr}`))
  assert.match(stdout, /tests [34]\n[\s\S]*fail 0\n/)
})

test('every file of the project that a document names or links to exists', () => {
  const documents = globSync(['*.md', 'docs/**/*.md', 'client/README.md'], { cwd: root })
  const unknown = documents.flatMap(document => {
    const text = readFileSync(join(root, document), 'utf8').replaceAll(/^ *```.*?^ *```/gms, '')
    const named = Array.from(text.matchAll(/`([\w.-]+(?:\/[\w.-]+)+\.(?:ts|mjs|sql|graphql|ya?ml))`/g))
    const lost = named.flatMap(([, path = '']) => {
      const isThere = ['', 'src', 'test'].some(folder => existsSync(join(root, folder, path)))
      return isThere || /NNNN|example|coupon/.test(path) ? [] : [`${document}: ${path}`]
    })
    const links = Array.from(text.matchAll(/\]\((?!https?:)([^)\s#]+)(?:#[^)\s]*)?\)/g), ([, target = '']) => target)
    const broken = links.filter(target => !existsSync(join(root, document, '..', target)))
    return [...lost, ...broken.map(target => `${document}: ${target}`)]
  })
  assert.deepEqual(unknown, [])
})
