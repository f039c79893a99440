import { refusal } from '../../errors.ts'
import type { PreparedOperation } from '../documents.ts'
import { introspectionBound } from '../introspection.ts'
import type { Variables } from '../tree.ts'

/** Refuses an operation that costs too much with these variables. */
export function checkComplexity(operation: PreparedOperation, variables: Variables, most: number): void {
  const { data, introspection } = operation.cost(variables)
  if (introspection > introspectionBound) throw tooComplex(introspection, introspectionBound)
  if (data > most) throw tooComplex(data, most)
}

function tooComplex(sum: number, limit: number) {
  // Fragments within fragments can make the cost larger than a number can hold.
  const cost = Math.min(sum, Number.MAX_SAFE_INTEGER)
  return refusal('COMPLEXITY_LIMIT_EXCEEDED', `The operation costs ${cost}; ${limit} is allowed.`, { cost, limit })
}
