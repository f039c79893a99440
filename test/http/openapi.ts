import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SchemaObject as Schema } from 'ajv'
import { load } from 'js-yaml'

export const openApiFile = join(import.meta.dirname, '..', '..', 'api', 'openapi.yaml')

export type Named<Value> = Readonly<Record<string, Value>>

export interface Media {
  readonly schema: Schema
  readonly example?: unknown
  readonly examples?: Named<{ readonly value: unknown }>
}

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema: Schema
  readonly example?: unknown
}

export interface Answer {
  readonly headers?: Named<{ readonly schema: object; readonly example: string }>
  readonly content?: Named<Media>
}

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly parameters: readonly Parameter[]
  /** The example bodies. */
  readonly bodies: readonly unknown[]
  readonly requestBody?: { readonly content: Named<Media> }
  readonly responses: Named<Answer>
  /** Whether it also exists below `/api`. */
  readonly isBelowApi: boolean
}

interface Document {
  readonly info: { readonly version: string }
  readonly paths: Named<Named<unknown>>
  readonly components: Named<Named<object>> & { readonly schemas: Named<Schema> }
}

/** `api/openapi.yaml`. */
export const openApi = load(readFileSync(openApiFile, 'utf8')) as Document

/** Operations by a name such as `GET /users`, with all references to responses, headers and parameters resolved. */
export const operations: ReadonlyMap<string, Operation> = new Map(
  Object.entries(openApi.paths).flatMap(([path, { servers, ...methods }]) =>
    Object.entries(methods).map(([method, written]) => {
      const operation = resolved({ parameters: [], ...(written as object) })
      const bodies = Object.values(operation.requestBody?.content ?? {}).flatMap(examplesOf)
      return [`${method.toUpperCase()} ${path}`, { ...operation, bodies, isBelowApi: servers === undefined }]
    }),
  ),
)

function resolved(part: unknown): Operation {
  const text = JSON.stringify(part, (_key, value) => {
    const [, kind = '', name = ''] = /^#\/components\/(responses|headers|parameters)\/(\w+)$/.exec(value?.$ref) ?? []
    return kind === '' ? value : openApi.components[kind]?.[name]
  })
  return JSON.parse(text)
}

export function examplesOf({ example, examples = {} }: Media): readonly unknown[] {
  const several = Object.values(examples).map(({ value }) => value)
  return example === undefined ? several : [example, ...several]
}
