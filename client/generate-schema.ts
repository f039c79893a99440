import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { codegen } from '@graphql-codegen/core'
import * as typescript from '@graphql-codegen/typescript'
import { parse } from 'graphql'

const schema = join(import.meta.dirname, '..', 'api', 'schema.graphql')
const target = join(import.meta.dirname, 'src', 'schema.ts')
const head = '// The types of api/schema.graphql. `npm run build` writes this file, and a test compares them.\n'

/** The types of the schema, as a source file of the client. */
export async function schemaTypes(): Promise<string> {
  const types = await codegen({
    filename: target,
    schema: parse(readFileSync(schema, 'utf8')),
    documents: [],
    config: { scalars: { DateTime: 'string' }, strictScalars: true, useTypeImports: true, enumsAsTypes: true },
    plugins: [{ typescript: {} }],
    pluginMap: { typescript },
  })
  return head + types
}

if (import.meta.main) writeFileSync(target, await schemaTypes())
