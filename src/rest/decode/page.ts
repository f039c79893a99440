import { badInput, idOf } from '../../core/input.ts'
import { type PageRequest, pageBounds } from '../../core/page.ts'
import type { Fields } from '../../server/fields.ts'

/** Reads the page from the query string. The default is the first thousand items. */
export function decodePage({ limit, offset, after }: Fields): PageRequest {
  const page = {
    limit: wholeNumber('limit', limit, 1, pageBounds.limit, pageBounds.limit),
    offset: wholeNumber('offset', offset, 0, pageBounds.offset, 0),
  }
  if (after === undefined) return page
  if (offset !== undefined) throw badInput('after and offset cannot be used together')
  const id = typeof after === 'string' ? idOf(after) : undefined
  if (id === undefined) throw badInput(`after must be an integer from 1 to ${Number.MAX_SAFE_INTEGER}`)
  return { ...page, after: id }
}

function wholeNumber(name: string, value: unknown, least: number, most: number, fallback: number): number {
  if (value === undefined) return fallback
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  if (number >= least && number <= most) return number
  throw badInput(`${name} must be an integer from ${least} to ${most}`)
}
