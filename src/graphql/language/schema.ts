import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildSchema, type GraphQLSchema, isScalarType, Kind } from 'graphql'

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

/** Parses an ISO-8601 date and time into the one format that the store uses: 2026-01-31T12:00:00.000Z. */
export function dateTimeOf(value: unknown): string {
  const [, date = '', time, seconds = ':00', fraction = '', offset] =
    (typeof value === 'string' && pattern.exec(value)) || []
  // Digits after the milliseconds are cut off. Rounding could move the time to the next second.
  const instant = new Date(`${date}T${time}${seconds}.${fraction.slice(0, 3).padEnd(3, '0')}${offset}`)
  // JavaScript would turn 31 February into a day in March, so the date is compared with the input.
  const isDay = date !== '' && new Date(`${date}T00:00:00Z`).toJSON()?.startsWith(date)
  // Years before 0 and after 9999 begin with a sign.
  if (isDay && /^\d/.test(instant.toJSON() ?? '')) return instant.toJSON()
  throw new TypeError('DateTime must be an ISO-8601 date and time with an offset or Z, such as 2026-01-31T12:00:00Z')
}

const pattern =
  /^(\d{4}-\d\d-\d\d)T((?:[01]\d|2[0-3]):[0-5]\d)(?:(:[0-5]\d)(?:[.,](\d{1,9}))?)?(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)$/
