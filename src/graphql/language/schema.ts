import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildSchema, type GraphQLSchema, isScalarType, Kind } from 'graphql'
import { dateTimeOf } from './date-time.ts'

/** The schema as `api/schema.graphql` writes it, its own scalar given its meaning. */
export function loadSchema(): GraphQLSchema {
  const schema = buildSchema(readFileSync(join(import.meta.dirname, '..', '..', '..', 'api', 'schema.graphql'), 'utf8'))
  const dateTime = schema.getType('DateTime')
  if (!isScalarType(dateTime)) throw new Error('The schema has no DateTime')
  dateTime.coerceInputValue = dateTimeOf
  dateTime.coerceInputLiteral = literal => dateTimeOf(literal.kind === Kind.STRING ? literal.value : undefined)
  return schema
}
