import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { GraphQLField, GraphQLObjectType } from 'graphql'
import { buildSchema, getNamedType, isLeafType, isListType, isNullableType, isObjectType } from 'graphql'
import type { Random } from './values.ts'

/** A valid GraphQL operation, as the members of a request. */
export interface Operation {
  readonly query: string
  readonly variables: Readonly<Record<string, unknown>>
}

export type OperationKind = 'query' | 'mutation' | 'subscription'

const schema = buildSchema(readFileSync(join(import.meta.dirname, '..', '..', 'api', 'schema.graphql'), 'utf8'))
const roots = {
  query: schema.getQueryType(),
  mutation: schema.getMutationType(),
  subscription: schema.getSubscriptionType(),
}

/**
 * Generates an operation from the schema, so that new fields and arguments are used automatically. `id` returns the id
 * of a row.
 */
export function operationOf(kind: OperationKind, random: Random, id: () => number): Operation {
  const root = roots[kind]
  if (!isObjectType(root)) throw new Error(`The schema has no ${kind}`)
  if (kind === 'query' && random.chance(0.05)) return { query: random.pick(aboutTheSchema), variables: {} }
  const declarations: string[] = []
  const variables: Record<string, unknown> = {}

  const argumentOf = ({ name, type }: GraphQLField<unknown, unknown>['args'][number]) => {
    const value = sampleOf(name, getNamedType(type).name, random, id)
    const isList = isListType(isNullableType(type) ? type : type.ofType)
    const given = isList ? [value] : value
    if (random.chance(0.5)) return `${name}: ${JSON.stringify(given)}`
    const variable = `v${declarations.length}`
    declarations.push(`$${variable}: ${type}`)
    variables[variable] = given
    return `${name}: $${variable}`
  }
  const field = ({ name, args, type }: GraphQLField<unknown, unknown>, depth: number, alias = ''): string => {
    const isGiven = (argument: (typeof args)[number]) =>
      !isNullableType(argument.type) || argument.name === 'limit' || random.chance(0.15)
    const given = args.filter(isGiven).map(argumentOf)
    const inner = getNamedType(type)
    const call = `${alias}${name}${given.length === 0 ? '' : `(${given.join(', ')})`}`
    return isObjectType(inner) ? `${call} ${selection(inner, depth + 1)}` : call
  }
  const selection = (type: GraphQLObjectType, depth: number): string => {
    const fields = Object.values(type.getFields())
    const leaves = fields.filter(each => isLeafType(getNamedType(each.type)))
    const others = fields.filter(each => !leaves.includes(each))
    const chosen = Array.from({ length: random.between(1, 3) }, () => field(random.pick(leaves), depth))
    if (depth < 4 && others.length > 0 && random.chance(0.4))
      chosen.push(field(random.pick(others), depth, `n${depth}: `))
    return random.chance(0.9) ? `{ ${chosen.join(' ')} }` : `{ ... on ${type.name} { ${chosen.join(' ')} } }`
  }

  const fields = Object.values(root.getFields())
  const count = kind === 'subscription' ? 1 : random.between(1, 2)
  const chosen = Array.from({ length: count }, (_, index) => field(random.pick(fields), 0, `f${index}: `))
  const header = declarations.length === 0 ? '' : `(${declarations.join(', ')})`
  return { query: `${kind} ${header} { ${chosen.join(' ')} }`, variables }
}

const aboutTheSchema = [
  '{ __schema { queryType { name } types { name kind fields { name type { name ofType { name } } } } } }',
  '{ __type(name: "Post") { name fields { name args { name defaultValue } } } __typename }',
]

function sampleOf(name: string, type: string, random: Random, id: () => number): unknown {
  if (type === 'ID') return String(id())
  if (type === 'Int') return name === 'limit' ? random.between(0, 3) : random.between(0, 5)
  if (type === 'DateTime') return random.pick(['2026-01-31T12:00:00Z', '2024-02-29T00:00+01:00'])
  if (type === 'Boolean') return random.chance(0.5)
  return `Text ${random.below(1000)} 🎈`
}
