import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { codegen } from '@graphql-codegen/core'
import * as typedDocumentNode from '@graphql-codegen/typed-document-node'
import * as typescript from '@graphql-codegen/typescript'
import * as typescriptOperations from '@graphql-codegen/typescript-operations'
import { parse } from 'graphql'
import { openApiFile } from '../http/openapi.ts'
import { type Page, root } from './page.ts'

const pluginMap = {
  typescript,
  'typescript-operations': typescriptOperations,
  'typed-document-node': typedDocumentNode,
}

/** Generates types like the command line of GraphQL Code Generator, with the settings of the page. */
export async function generateOperations({ generator }: Page, folder: string): Promise<void> {
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
export async function generatePaths(folder: string): Promise<void> {
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
