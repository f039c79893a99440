import { AppError } from './errors.ts'

/**
 * Makes an operation's input of what was sent, or throws. Operations call it once the caller is known to be allowed:
 * who may not do something is told that first, whatever the input.
 */
export type Decode<Input> = () => Input

export function badInput(sentence: string): AppError {
  return new AppError('bad-input', sentence)
}

/** Text that both engines store and every reader can decode: no U+0000, no half of a surrogate pair. */
export function text(name: string, value: unknown, longest: number): string {
  if (typeof value !== 'string') throw badInput(`${name} must be a string`)
  if (value.length > longest) throw badInput(`${name} must be at most ${longest} characters long`)
  if (value.includes('\0') || !value.isWellFormed()) throw badInput(`${name} contains characters that are not allowed`)
  return value
}

/** Text that says something. */
export function filled(name: string, value: unknown, longest: number): string {
  const said = text(name, value, longest)
  if (isBlank(said)) throw badInput(`${name} must not be empty`)
  return said
}

export function integer(name: string, value: unknown, least: number, most: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
  throw badInput(`${name} must be an integer from ${least} to ${most}`)
}

export function isBlank(value: string): boolean {
  return value.trim() === ''
}

/** The id that a text names, if it can name a row at all: `01`, `1.5`, `abc` and 2^53 cannot. */
export function idOf(text: string): number | undefined {
  if (!/^[1-9]\d{0,15}$/.test(text)) return undefined
  const id = Number(text)
  return Number.isSafeInteger(id) ? id : undefined
}
