import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { codegen } from '@graphql-codegen/core'
import * as typedDocumentNode from '@graphql-codegen/typed-document-node'
import * as typescript from '@graphql-codegen/typescript'
import * as typescriptOperations from '@graphql-codegen/typescript-operations'
import { parse } from 'graphql'
import { openApiFile } from '../http/openapi.ts'
import { startTestAppOn } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { temporaryFolder } from '../support/folder.ts'
import { shared } from '../support/shared.ts'

const root = join(import.meta.dirname, '..', '..')

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
    const page = readPage(name)
    const app = shared(() => startTestAppOn(sqlite, { DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' }))
    const folder = temporaryFolder()
    after(() => folder[Symbol.dispose]())
    before(async () => {
      install(page, folder.path, app.url)
      await generateOperations(page, folder.path)
      if (files.includes('openapi-client.ts')) await generatePaths(folder.path)
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

/** The code blocks of a page, which name a file each, with the expected output of the programs. */
function readPage(file: string) {
  const page = readFileSync(join(root, file), 'utf8')
  const blocks = page.matchAll(/```\w+\n(?:\/\/|#) (\S+)\n(.*?)```\n(?:\n```\n(.*?)```)?/gs)
  const examples = Array.from(blocks, ([, file = '', code = '', output]) => ({ file, code, output }))
  const programs = examples.filter(({ file }) => /\.m?[jt]s$/.test(file))
  const generator: Generator = JSON.parse(/```json\n(.*?)```/s.exec(page)?.[1] ?? assert.fail())
  return { examples, programs, generator }
}

/** The settings of GraphQL Code Generator. */
interface Generator {
  readonly schema: string
  readonly documents: string
  readonly generates: Readonly<Record<string, { readonly plugins: readonly string[]; readonly config: object }>>
}

/** Writes the files of the page to a folder, in which the packages of this project and its client are installed. */
function install({ examples }: ReturnType<typeof readPage>, folder: string, address: string): void {
  const packages = join(folder, 'node_modules')
  mkdirSync(packages)
  for (const name of readdirSync(join(root, 'node_modules')))
    symlinkSync(join(root, 'node_modules', name), join(packages, name))
  symlinkSync(join(root, 'client'), join(packages, 'duet-client'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  for (const { file, code } of examples)
    writeFileSync(join(folder, file), code.replaceAll('http://127.0.0.1:4000', address))
}

const pluginMap = {
  typescript,
  'typescript-operations': typescriptOperations,
  'typed-document-node': typedDocumentNode,
}

/** Generates types like the command line of GraphQL Code Generator, with the settings of the page. */
async function generateOperations({ generator }: ReturnType<typeof readPage>, folder: string): Promise<void> {
  const [[filename, { plugins, config }] = assert.fail()] = Object.entries(generator.generates)
  const code = await codegen({
    filename,
    schema: parse(readFileSync(join(root, generator.schema), 'utf8')),
    documents: [{ document: parse(readFileSync(join(folder, generator.documents), 'utf8')) }],
    config,
    plugins: plugins.map(name => ({ [name]: {} })),
    pluginMap,
  })
  writeFileSync(join(folder, filename), code)
}

/** Generates types like the command line of openapi-typescript. */
async function generatePaths(folder: string): Promise<void> {
  // It uses the compiler interface, which TypeScript 7 no longer has.
  const compiler = new URL('./compiler.ts', import.meta.url).href
  const hooks = registerHooks({
    resolve: (name, context, next) =>
      name === 'typescript' && context.parentURL?.includes('/openapi-typescript/')
        ? { url: compiler, shortCircuit: true }
        : next(name, context),
  })
  const { default: openapi, astToString } = await import('openapi-typescript')
  hooks.deregister()
  writeFileSync(join(folder, 'openapi.ts'), astToString(await openapi(pathToFileURL(openApiFile))))
}
