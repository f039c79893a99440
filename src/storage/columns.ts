import { fault } from '../core/errors.ts'
import type { Value } from './sql.ts'

/**
 * Read the value of a column as what it must be. A statement that returns its columns in another order than the code
 * expects fails here, instead of giving a client another row's values.
 */
export function integerIn(value: Value | undefined): number {
  return typeof value === 'number' ? value : mismatch('an integer', value)
}

export function textIn(value: Value | undefined): string {
  return typeof value === 'string' ? value : mismatch('a text', value)
}

export function integerOrNullIn(value: Value | undefined): number | null {
  return value === null ? null : integerIn(value)
}

export function oneIn<Name extends string>(names: readonly Name[], value: Value | undefined): Name {
  const found = names.find(name => name === value)
  return found ?? mismatch(names.join(' or '), value)
}

/** The value itself may be private. */
function mismatch(expected: string, value: Value | undefined): never {
  throw fault(new Error(`A column must be ${expected}, and is ${value === null ? 'null' : `a ${typeof value}`}`))
}
