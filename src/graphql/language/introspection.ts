import { type GraphQLResolveInfo, isObjectType } from 'graphql'
import { refusal } from '../errors.ts'
import { type Collected, collect, type Merged, type Request } from './plan.ts'
import { argumentIn, type Field } from './tree.ts'

/** How large an answer about the schema may be, about as many fields as it has. The usual tools ask for some 1,500. */
export const introspectionBound = 5_000

/**
 * Answers an introspection field with the resolvers of graphql-js. Its own executor would go on without a bound: aliases
 * of lists within lists make an answer of a million fields. All such fields of a request count together.
 */
export function introspect(fields: Merged, { schema, variables, introspected }: Request): string {
  const info = { schema } as GraphQLResolveInfo

  const known = new Map<Merged, Collected>()

  const jsonOf = (merged: Merged, source: unknown): string => {
    const [first] = merged
    if (++introspected.fields > introspectionBound) {
      const message = `The answer about the schema has more than ${introspectionBound} fields.`
      throw refusal('COMPLEXITY_LIMIT_EXCEEDED', message, { limit: introspectionBound })
    }
    const value = resolved(first, source)
    if (first.selections.length === 0) return JSON.stringify(value ?? null)
    const selections = merged.map(field => field.selections)
    const inner = known.get(merged) ?? collect(selections, variables)
    known.set(merged, inner)
    const objectOf = (item: unknown) => {
      const entries = [...inner].map(([key, fields]) => `${JSON.stringify(key)}:${jsonOf(fields, item)}`)
      return `{${entries.join(',')}}`
    }
    if (Array.isArray(value)) return `[${value.map(objectOf).join(',')}]`
    return value === undefined || value === null ? 'null' : objectOf(value)
  }

  const resolved = ({ kind, type, name, args }: Field, source: unknown): unknown => {
    for (const argument of args.values()) argumentIn(argument, variables)
    if (kind === 'typename') return type
    if (name === '__schema') return schema
    if (name === '__type') return schema.getType(String(argumentIn(args.get('name'), variables)))
    const parent = schema.getType(type)
    const { resolve } = (isObjectType(parent) && parent.getFields()[name]) || {}
    const includeDeprecated = argumentIn(args.get('includeDeprecated'), variables) ?? false
    return resolve?.(source, { includeDeprecated }, undefined, info)
  }

  return jsonOf(fields, schema)
}
