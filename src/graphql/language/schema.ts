import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildSchema, type GraphQLSchema, isScalarType, Kind } from 'graphql'
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
  return schema
}
