/** A part of a list, and whether there is more behind it. */
export interface Page<Item> extends PageRequest {
  readonly items: readonly Item[]
  readonly more: boolean
}

export interface PageRequest {
  readonly limit: number
  readonly offset: number
}

/** `offset`: what is skipped is work, too. `characters`: of the texts in one page; see `pageOf`. */
export const pageBounds = Object.freeze({ limit: 1000, offset: 100_000, characters: 1024 * 1024 })

/**
 * Cuts what was read with one row more than asked for. Where the texts of items are told to be long, the page ends before
 * they are too much to be written out at once: it then has fewer items than asked for, at least one, and says so.
 */
export function pageOf<Item>(
  items: readonly Item[],
  { limit, offset }: PageRequest,
  lengthOf: (item: Item) => number = () => 0,
): Page<Item> {
  let count = 0
  let length = 0
  for (const item of items) {
    length += lengthOf(item)
    if (count === limit || (count > 0 && length > pageBounds.characters)) break
    count++
  }
  return { items: items.slice(0, count), more: items.length > count, limit, offset }
}
