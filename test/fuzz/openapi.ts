import { readFileSync } from 'node:fs'
import { openApiFile } from '../support/write-openapi.ts'

/** An operation of the OpenAPI document, with everything that a valid request needs. */
export interface Operation {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly parameters: readonly Parameter[]
  /** The example bodies. */
  readonly bodies: readonly unknown[]
  /** Whether it also exists below `/api`. */
  readonly isBelowApi: boolean
}

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly example?: unknown
  readonly schema: { readonly default?: unknown; readonly minimum?: number; readonly enum?: readonly unknown[] }
}

type Named<Value> = Readonly<Record<string, Value>>

interface Media {
  readonly example?: unknown
  readonly examples?: Named<{ readonly value: unknown }>
}

interface Written {
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[]
  readonly requestBody?: { readonly content: Named<Media> }
}

interface Document {
  readonly paths: Named<Named<unknown>>
  readonly components: { readonly parameters: Named<Parameter> }
}

const { paths, components }: Document = JSON.parse(readFileSync(openApiFile, 'utf8'))

export const operations: readonly Operation[] = Object.entries(paths).flatMap(([path, { servers, ...methods }]) =>
  Object.entries(methods as Named<Written>).map(([key, { parameters = [], requestBody }]) => {
    const method = key.toUpperCase()
    const bodies = Object.values(requestBody?.content ?? {}).flatMap(examplesOf)
    const isBelowApi = servers === undefined
    return { name: `${method} ${path}`, method, path, parameters: parameters.map(resolved), bodies, isBelowApi }
  }),
)

export const documentedNames: readonly string[] = operations.map(({ name }) => name)

function resolved(parameter: Parameter | { readonly $ref: string }): Parameter {
  if (!('$ref' in parameter)) return parameter
  const known = components.parameters[parameter.$ref.replace(/.*\//, '')]
  if (known === undefined) throw new Error(`The document has no ${parameter.$ref}`)
  return known
}

function examplesOf({ example, examples = {} }: Media): readonly unknown[] {
  const several = Object.values(examples).map(({ value }) => value)
  return example === undefined ? several : [example, ...several]
}

export function exampleOf({ example, schema }: Parameter): unknown {
  return example ?? schema.default ?? schema.enum?.[0] ?? schema.minimum ?? 1
}
