import { AppError } from './errors.ts'

/**
 * Turns the data of a request into the input of an operation, or throws. An operation calls it after the access check,
 * so that a caller without permission gets that error first, whatever the input is.
 */
export type Decode<Input> = () => Input

/** The fields of a JSON object, not validated yet. */
export type Fields = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function badInput(sentence: string): AppError {
  return new AppError('bad-input', sentence)
}

/** Accepts text that both database engines can store and every client can decode: no U+0000, no lone surrogate. */
export function text(name: string, value: unknown, longest: number): string {
  if (typeof value !== 'string') throw badInput(`${name} must be a string`)
  if (value.length > longest) throw badInput(`${name} must be at most ${longest} characters long`)
  if (value.includes('\0') || !value.isWellFormed()) throw badInput(`${name} contains characters that are not allowed`)
  return value
}

export function nonBlankText(name: string, value: unknown, longest: number): string {
  const result = text(name, value, longest)
  if (isBlank(result)) throw badInput(`${name} must not be empty`)
  return result
}

/** Accepts text without control characters. In JSON most of them take six bytes, any other character at most three. */
export function withoutControls(name: string, text: string): string {
  if (/\p{Cc}/u.test(text)) throw badInput(`${name} must not contain control characters`)
  return text
}

export function integer(name: string, value: unknown, least: number, most: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
  throw badInput(`${name} must be an integer from ${least} to ${most}`)
}

export function isBlank(value: string): boolean {
  return value.trim() === ''
}

/** The id in a text, or `undefined` if no row can have such an id, as with `01`, `1.5`, `abc` and 2^53. */
export function idOf(text: string): number | undefined {
  if (!/^[1-9]\d{0,15}$/.test(text)) return undefined
  const id = Number(text)
  return Number.isSafeInteger(id) ? id : undefined
}
