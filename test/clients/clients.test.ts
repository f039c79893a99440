import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { startTestAppOn, type TestApp } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { generateOperations, generatePaths } from './generate.ts'
import { examples, folderOfExamples, root } from './page.ts'

describe('The clients of docs/clients.md', () => {
  let app: TestApp
  let folder: ReturnType<typeof folderOfExamples>
  before(async () => {
    app = await startTestAppOn(sqlite, { DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' })
    folder = folderOfExamples(app.url)
    await Promise.all([generateOperations(folder.path), generatePaths(folder.path)])
  })
  after(async () => {
    folder[Symbol.dispose]()
    await app[Symbol.asyncDispose]()
  })

  const programs = examples.filter(({ file }) => /\.m?[jt]s$/.test(file))

  it('include one example for each client', () => {
    const files = ['apollo.mjs', 'urql.mjs', 'typed.ts', 'openapi-client.ts']
    assert.deepEqual(
      programs.map(({ file }) => file),
      files,
    )
  })

  for (const { file, output } of programs) {
    it(`print the output that the page shows: ${file}`, async () => {
      assert.ok(output, `${file} prints nothing`)
      assert.equal(await run(folder.path, process.execPath, file), output)
    })
  }

  it('pass the type check, with generated types', async () => {
    const settings = { extends: join(root, 'tsconfig.json'), include: ['*.ts'] }
    const compilerOptions = { lib: ['es2024', 'dom'], noUnusedLocals: false, exactOptionalPropertyTypes: false }
    writeFileSync(join(folder.path, 'tsconfig.json'), JSON.stringify({ ...settings, compilerOptions }))
    await run(folder.path, join(root, 'node_modules', '.bin', 'tsc'), '--noEmit')
  })
})

/** Runs a program, and returns its output. */
async function run(folder: string, program: string, ...args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', text => {
      printed += text
    })
  }
  const [status] = await once(child, 'close')
  assert.equal(status, 0, printed)
  return printed
}
