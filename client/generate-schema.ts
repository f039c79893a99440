import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { codegen } from '@graphql-codegen/core'
import * as typescript from '@graphql-codegen/typescript'
import { buildSchema, type GraphQLField, getNamedType, isObjectType, parse } from 'graphql'
import { privateFields } from '../src/core/entities.ts'

const schema = join(import.meta.dirname, '..', 'api', 'schema.graphql')
const target = join(import.meta.dirname, 'src', 'schema.ts')
const head = '// The types of api/schema.graphql. `npm run build` writes this file, and a test compares them.\n'

/** The types of the schema, as a source file of the client, and what selections must know of it at run time. */
export async function schemaTypes(): Promise<string> {
  const text = readFileSync(schema, 'utf8')
  const types = await codegen({
    filename: target,
    schema: parse(text),
    documents: [],
    config: {
      scalars: { DateTime: 'string', ID: { input: 'string | number', output: 'string' } },
      strictScalars: true,
      useTypeImports: true,
      enumsAsTypes: true,
      avoidOptionals: { field: true },
    },
    plugins: [{ typescript: {} }],
    pluginMap: { typescript },
  })
  return `${head}${types}\n${fieldsOf(text)}`
}

/** Of each field of each object: the type, if that is an object, and the types of the arguments. */
function fieldsOf(text: string): string {
  const objects = Object.values(buildSchema(text).getTypeMap()).filter(isObjectType)
  const own = objects.filter(({ name }) => !name.startsWith('__'))
  const rows = (write: (field: GraphQLField, type: string) => string | undefined) =>
    own.flatMap(type => {
      const lines = Object.values(type.getFields()).flatMap(field => write(field, type.name) ?? [])
      return [`  ${type.name}: {`, ...lines.map(line => `    ${line},`), '  },']
    })
  const inputs = rows(({ name, args }, type) =>
    args.length === 0 ? undefined : `${name}: ${type}${name.charAt(0).toUpperCase()}${name.slice(1)}Args`,
  )
  const table = rows(({ name, type, args }) => {
    const named = getNamedType(type)
    const types = args.map(arg => [arg.name, String(arg.type)])
    return `${name}: ${JSON.stringify({
      ...(isObjectType(named) && { type: named.name }),
      ...(types.length > 0 && { args: Object.fromEntries(types) }),
      ...(privateFields.has(name) && { private: true }),
    })}`
  })
  return [
    '/** The arguments of the fields that take some. */',
    'export type Arguments = {',
    ...inputs,
    '};',
    '',
    '/** Fields that not everybody may read. */',
    `export type PrivateField = ${[...privateFields].map(name => `'${name}'`).join(' | ')};`,
    '',
    'export type FieldFacts = { type?: string; args?: { [name: string]: string }; private?: true };',
    '',
    '/** What is needed to write the document of a selection. */',
    'export const fields: { [type: string]: { [field: string]: FieldFacts } } = {',
    ...table,
    '};',
    '',
  ].join('\n')
}

if (import.meta.main) writeFileSync(target, await schemaTypes())
