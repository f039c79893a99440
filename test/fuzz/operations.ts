import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { GraphQLArgument, GraphQLField, GraphQLObjectType } from 'graphql'
import { buildSchema, getNamedType, isLeafType, isListType, isNullableType, isObjectType } from 'graphql'
import type { Random } from './values.ts'

/** A valid GraphQL operation, as the members of a request. */
export interface Operation {
  readonly query: string
  readonly variables: Readonly<Record<string, unknown>>
  readonly operationName?: string
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
  const writer = new Writer(random, id)
  const fields = Object.values(root.getFields())
  const count = kind === 'subscription' ? 1 : random.between(1, 2)
  const chosen = Array.from({ length: count }, (_, index) => writer.field(random.pick(fields), 0, `f${index}: `))
  const name = random.chance(0.3) ? 'Operation' : ''
  const header = writer.declarations.length === 0 ? '' : `(${writer.declarations.join(', ')})`
  const query = `${kind} ${name}${header} { ${chosen.join(' ')} }${writer.fragments.join('')}`
  return { query, variables: writer.variables, ...(name !== '' && random.chance(0.5) && { operationName: name }) }
}

const aboutTheSchema = [
  '{ __schema { queryType { name } types { name kind fields { name type { name ofType { name } } } } } }',
  '{ __type(name: "Post") { name fields { name args { name defaultValue } } } __typename }',
]

class Writer {
  readonly declarations: string[] = []
  readonly variables: Record<string, unknown> = {}
  readonly fragments: string[] = []
  readonly #random: Random
  readonly #id: () => number

  constructor(random: Random, id: () => number) {
    this.#random = random
    this.#id = id
  }

  field({ name, args, type }: GraphQLField<unknown, unknown>, depth: number, alias = ''): string {
    const given = args
      .filter(argument => !isNullableType(argument.type) || argument.name === 'limit' || this.#random.chance(0.15))
      .map(argument => `${argument.name}: ${this.#argument(argument)}`)
    const inner = getNamedType(type)
    const call = `${alias}${name}${given.length === 0 ? '' : `(${given.join(', ')})`}${this.#condition()}`
    return isObjectType(inner) ? `${call} ${this.#selection(inner, depth + 1)}` : call
  }

  #selection(type: GraphQLObjectType, depth: number): string {
    const fields = Object.values(type.getFields())
    const leaves = fields.filter(field => isLeafType(getNamedType(field.type)))
    const others = fields.filter(field => !leaves.includes(field))
    const chosen = Array.from({ length: this.#random.between(1, 3) }, () =>
      this.field(this.#random.pick(leaves), depth),
    )
    if (depth < 4 && others.length > 0 && this.#random.chance(0.4)) chosen.push(this.#nested(others, depth))
    if (this.#random.chance(0.1)) chosen.push('__typename')
    if (this.#random.chance(0.9)) return `{ ${chosen.join(' ')} }`
    if (this.#random.chance(0.5)) return `{ ... on ${type.name} { ${chosen.join(' ')} } }`
    const name = `F${this.fragments.length}`
    this.fragments.push(` fragment ${name} on ${type.name} { ${chosen.join(' ')} }`)
    return `{ ...${name} }`
  }

  #nested(fields: readonly GraphQLField<unknown, unknown>[], depth: number): string {
    return this.field(this.#random.pick(fields), depth, `n${depth}: `)
  }

  #argument({ name, type }: GraphQLArgument): string {
    const value = this.#value(name, getNamedType(type).name)
    const isList = isListType(isNullableType(type) ? type : type.ofType)
    if (this.#random.chance(0.5)) return isList ? `[${JSON.stringify(value)}]` : JSON.stringify(value)
    const variable = `v${this.declarations.length}`
    this.declarations.push(`$${variable}: ${type}`)
    this.variables[variable] = isList ? [value] : value
    return `$${variable}`
  }

  #value(name: string, type: string): unknown {
    if (type === 'ID') return String(this.#id())
    if (type === 'Int') return name === 'limit' ? this.#random.between(0, 3) : this.#random.between(0, 5)
    if (type === 'DateTime') return this.#random.pick(['2026-01-31T12:00:00Z', '2024-02-29T00:00+01:00'])
    if (type === 'Boolean') return this.#random.chance(0.5)
    return `Text ${this.#random.below(1000)} 🎈`
  }

  #condition(): string {
    if (!this.#random.chance(0.05)) return ''
    const variable = `c${this.declarations.length}`
    this.declarations.push(`$${variable}: Boolean = true`)
    return ` @${this.#random.pick(['include', 'skip'])}(if: $${variable})`
  }
}
