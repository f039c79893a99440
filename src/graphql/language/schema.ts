import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildSchema, type GraphQLSchema, isObjectType, isScalarType, Kind } from 'graphql'
import { type Entity, entities, type Field, type Relation } from '../../core/entities.ts'
import { dateTimeOf } from './date-time.ts'

let loaded: GraphQLSchema | undefined

/** The schema, which nothing changes. All apps of a thread share it; tests start hundreds of them. */
export function loadSchema(): GraphQLSchema {
  loaded ??= readSchema()
  return loaded
}

/** Reads `api/schema.graphql` and adds the parser of its own scalar, DateTime. */
function readSchema(): GraphQLSchema {
  const schema = buildSchema(readFileSync(join(import.meta.dirname, '..', '..', '..', 'api', 'schema.graphql'), 'utf8'))
  const dateTime = schema.getType('DateTime')
  if (!isScalarType(dateTime)) throw new Error('api/schema.graphql has no scalar DateTime')
  dateTime.coerceInputValue = dateTimeOf
  dateTime.coerceInputLiteral = literal => dateTimeOf(literal.kind === Kind.STRING ? literal.value : undefined)
  checkEntities(schema)
  return schema
}

/** Checks that the entity types of the schema match `entities`. Otherwise reads of single fields would fail. */
export function checkEntities(schema: GraphQLSchema): void {
  for (const [name, entity] of Object.entries(entities)) {
    const type = schema.getType(name)
    if (!isObjectType(type)) throw new Error(`api/schema.graphql has no type ${name}`)
    const offered = type.getFields()
    for (const [field, expected] of typesOf(entity)) {
      const actual = offered[field]?.type
      if (actual === undefined) throw new Error(`api/schema.graphql has no ${name}.${field}: ${expected}`)
      if (String(actual) !== expected) throw new Error(`api/schema.graphql: ${name}.${field} must be ${expected}`)
    }
    const unknown = Object.keys(offered).find(field => !(field in entity.fields) && !(field in entity.relations))
    if (unknown !== undefined) throw new Error(`src/core/entities.ts has no ${name}.${unknown}`)
  }
}

function typesOf({ fields, relations }: Entity): readonly (readonly [name: string, type: string])[] {
  return [
    ...Object.entries(fields).map(([name, field]) => [name, typeOfField(field)] as const),
    ...Object.entries(relations).map(([name, relation]) => [name, typeOfRelation(relation)] as const),
  ]
}

function typeOfField({ type, optional }: Field): string {
  const name = { id: 'ID', text: 'String', integer: 'Int', instant: 'DateTime' }[type]
  return optional ? name : `${name}!`
}

function typeOfRelation({ kind, to }: Relation): string {
  return kind === 'many' ? `[${to}!]!` : `${to}!`
}
