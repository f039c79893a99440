import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { temporaryFolder } from './support/folder.ts'

test('CONTRIBUTING.md has a test for HTTP, GraphQL and subscriptions, each under 25 lines, and they pass', async () => {
  const page = readFileSync(join(import.meta.dirname, '..', 'CONTRIBUTING.md'), 'utf8')
  const examples = Array.from(page.matchAll(/^```ts\n(\/\/ (\S+)\n.*?)^```/gms), ([, code = '', file = '']) => ({
    file,
    code,
  }))
  const folders = examples.map(({ file }) => dirname(file))
  assert.deepEqual(folders, ['test/rest', 'test/graphql', 'test/subscriptions'])
  using folder = temporaryFolder()
  mkdirSync(join(folder.path, 'test'))
  symlinkSync(join(import.meta.dirname, 'support'), join(folder.path, 'test', 'support'))
  for (const { file, code } of examples) {
    assert.ok(code.split('\n').length <= 25, file)
    mkdirSync(join(folder.path, dirname(file)))
    writeFileSync(join(folder.path, file), code)
  }
  // With this variable, Node does not run tests that a test starts.
  const { NODE_TEST_CONTEXT, ...env } = process.env
  const files = examples.map(({ file }) => file)
  const options = { cwd: folder.path, env }
  const run = promisify(execFile)(process.execPath, ['--test', '--test-isolation=none', ...files], options)
  const { stdout } = await run.catch(failure => assert.fail(`${failure.stdout}${failure.stderr}`))
  assert.match(stdout, /tests [34]\n[\s\S]*fail 0\n/)
})
