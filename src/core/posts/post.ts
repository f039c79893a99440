import { badInput, isBlank, text } from '../input.ts'

/** What a post or a comment may say: something, and not too much. */
export const postBounds = Object.freeze({ title: 300, content: 65_536, comment: 65_536 })

export function filled(name: string, value: unknown, longest: number): string {
  const filled = text(name, value, longest)
  if (isBlank(filled)) throw badInput(`${name} must not be empty`)
  return filled
}
