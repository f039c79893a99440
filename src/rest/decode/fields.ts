import { badInput } from '../../core/input.ts'
import { type Fields, isObject } from '../../server/fields.ts'

/** The members of a body that must be an object. */
export function fieldsOf(body: unknown): Fields {
  if (isObject(body)) return body
  throw badInput('Request body must be a JSON object')
}
