import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { startTestAppOn, type TestApp } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { generateOperations, generatePaths } from './generate.ts'
import { Page, root } from './page.ts'

/** The pages, their programs, and the settings of the compiler that readers have. */
const pages = {
  'docs/clients.md': {
    files: ['apollo.mjs', 'urql.mjs', 'typed.ts', 'openapi-client.ts'],
    options: { lib: ['es2024', 'dom'], noUnusedLocals: false, exactOptionalPropertyTypes: false },
  },
  'client/README.md': {
    files: ['sign-in.mjs', 'users.mjs', 'orders.mjs', 'select.ts', 'text.ts', 'typed.ts', 'live.mjs'],
    options: { lib: null, noUnusedLocals: false },
  },
}

for (const [name, { files, options }] of Object.entries(pages)) {
  describe(`The examples of ${name}`, () => {
    const page = new Page(name)
    let app: TestApp
    let folder: ReturnType<Page['folder']>
    before(async () => {
      app = await startTestAppOn(sqlite, { DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' })
      folder = page.folder(app.url)
      await generateOperations(page, folder.path)
      if (files.includes('openapi-client.ts')) await generatePaths(folder.path)
    })
    after(async () => {
      folder[Symbol.dispose]()
      await app[Symbol.asyncDispose]()
    })

    it('include one for each client or area', () => {
      const found = page.programs.map(({ file }) => file)
      assert.deepEqual(found, files)
    })

    for (const { file, output } of page.programs) {
      it(`print the output that the page shows: ${file}`, async () => {
        assert.ok(output, `${file} prints nothing`)
        assert.equal(await run(folder.path, process.execPath, file), output)
      })
    }

    it('pass the type check, with generated types', async () => {
      const settings = { extends: join(root, 'tsconfig.json'), include: ['*.ts'], compilerOptions: options }
      writeFileSync(join(folder.path, 'tsconfig.json'), JSON.stringify(settings))
      await run(folder.path, join(root, 'node_modules', '.bin', 'tsc'), '--noEmit')
    })
  })
}

/** Runs a program, and returns all that it prints. */
async function run(folder: string, ...command: readonly string[]): Promise<string> {
  const child = spawn('sh', ['-c', '"$0" "$@" 2>&1', ...command], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  const [printed, [status]] = await Promise.all([text(child.stdout), once(child, 'close')])
  assert.equal(status, 0, printed)
  return printed
}
