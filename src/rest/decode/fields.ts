import { badInput } from '../../core/input.ts'
import { type Fields, isObject } from '../../server/fields.ts'

/** The fields of a body, which must be a JSON object. */
export function fieldsOf(body: unknown): Fields {
  if (isObject(body)) return body
  throw badInput('Request body must be a JSON object')
}
