import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { codegen } from '@graphql-codegen/core'
import * as typedDocumentNode from '@graphql-codegen/typed-document-node'
import * as typescript from '@graphql-codegen/typescript'
import * as typescriptOperations from '@graphql-codegen/typescript-operations'
import { parse } from 'graphql'
import { startTestAppOn, type TestApp } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { temporaryFolder } from '../support/folder.ts'

const root = join(import.meta.dirname, '..', '..')
const page = readFileSync(join(root, 'client', 'README.md'), 'utf8')

/** The code blocks that name a file, and the expected output of each. */
const examples = [...page.matchAll(/```[jt]s\n\/\/ (\S+)\n(.*?)```\n\n```\n(.*?)```/gs)].map(
  ([, file = '', code = '', output = '']) => ({ file, code, output }),
)

describe('The examples of client/README.md', () => {
  let app: TestApp
  const folder = temporaryFolder()
  before(async () => {
    app = await startTestAppOn(sqlite, { DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' })
    mkdirSync(join(folder.path, 'node_modules'))
    for (const name of ['@types', 'undici-types', '@graphql-typed-document-node', 'graphql']) {
      link(join('node_modules', name), name)
    }
    link('client', 'duet-client')
    writeFileSync(join(folder.path, 'package.json'), '{ "type": "module" }')
    for (const { file, code } of examples) {
      writeFileSync(join(folder.path, file), code.replaceAll('http://127.0.0.1:4000', app.url))
    }
    await generateOperations(folder.path)
  })
  after(async () => {
    folder[Symbol.dispose]()
    await app[Symbol.asyncDispose]()
  })

  function link(from: string, to: string) {
    symlinkSync(join(root, from), join(folder.path, 'node_modules', to))
  }

  it('include one for each area', () => {
    const files = ['sign-in.mjs', 'users.mjs', 'orders.mjs', 'text.ts', 'typed.ts', 'live.mjs']
    assert.deepEqual(
      examples.map(({ file }) => file),
      files,
    )
  })

  for (const { file, output } of examples) {
    it(`print the output that the page shows: ${file}`, async () => {
      assert.equal(await run(folder.path, process.execPath, file), output)
    })
  }

  it('pass the type check, with the types of the built client', async () => {
    const checks = { strict: true, exactOptionalPropertyTypes: true, skipLibCheck: true }
    const compilerOptions = { ...checks, noEmit: true, module: 'nodenext', target: 'es2024', types: ['node'] }
    const settings = { compilerOptions: { ...compilerOptions, allowImportingTsExtensions: true }, include: ['*.ts'] }
    writeFileSync(join(folder.path, 'tsconfig.json'), JSON.stringify(settings))
    await run(folder.path, join(root, 'node_modules', '.bin', 'tsc'))
  })
})

/** Generates types like the command line of GraphQL Code Generator, with the settings of the page. */
async function generateOperations(folder: string): Promise<void> {
  const { generates, schema } = JSON.parse(/```json\n(.*?)```/s.exec(page)?.[1] ?? assert.fail())
  const { plugins, config } = generates['operations.ts']
  const code = await codegen({
    filename: 'operations.ts',
    schema: parse(readFileSync(join(root, schema), 'utf8')),
    documents: [{ document: parse(/```graphql\n(.*?)```/s.exec(page)?.[1] ?? assert.fail()) }],
    config,
    plugins: plugins.map((name: string) => ({ [name]: {} })),
    pluginMap: { typescript, 'typescript-operations': typescriptOperations, 'typed-document-node': typedDocumentNode },
  })
  writeFileSync(join(folder, 'operations.ts'), code)
}

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
