import { badInput, type Fields } from './input.ts'

/** A part of a list, and whether there is more behind it. */
export interface Page<Item> extends PageRequest {
  readonly items: readonly Item[]
  readonly more: boolean
}

export interface PageRequest {
  readonly limit: number
  readonly offset: number
}

export const pageBounds = Object.freeze({ limit: 1000, offset: 999_999_999_999_999 })

/** From the texts of a query string: nothing said means the first thousand. */
export function pageRequest({ limit, offset }: Fields): PageRequest {
  return {
    limit: wholeNumber('limit', limit, 1, pageBounds.limit, pageBounds.limit),
    offset: wholeNumber('offset', offset, 0, pageBounds.offset, 0),
  }
}

function wholeNumber(name: string, value: unknown, least: number, most: number, fallback: number): number {
  if (value === undefined) return fallback
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  if (number >= least && number <= most) return number
  throw badInput(`${name} must be an integer from ${least} to ${most}`)
}

/** Cuts what was read with one row more than asked for. */
export function pageOf<Item>(items: readonly Item[], { limit, offset }: PageRequest): Page<Item> {
  return { items: items.slice(0, limit), more: items.length > limit, limit, offset }
}
