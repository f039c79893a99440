/** A part of a list, with the request for it, and a flag that tells whether more items follow. */
export type Page<Item, Request extends PageRequest = PageRequest> = Request & {
  readonly items: readonly Item[]
  readonly more: boolean
}

export interface PageRequest {
  readonly limit: number
  readonly offset: number
  /** Only items with larger ids are listed, whether or not there is an item with this id. Then `offset` is 0. */
  readonly after?: number
}

/** `offset` is bounded because skipping rows costs work. `characters` bounds the texts of one page; see `pageOf`. */
export const pageBounds = Object.freeze({ limit: 1000, offset: 100_000, characters: 1024 * 1024 })

/**
 * Makes a page from rows that were read with one row more than the limit. If `lengthOf` is given, the page ends before
 * its texts exceed `pageBounds.characters`, because a response is serialized at once. Such a page has at least one item
 * but fewer than the limit, and `more` is true.
 */
export function pageOf<Item, Request extends PageRequest>(
  items: readonly Item[],
  request: Request,
  lengthOf: (item: Item) => number = () => 0,
): Page<Item, Request> {
  let count = 0
  let length = 0
  for (const item of items) {
    length += lengthOf(item)
    if (count === request.limit || (count > 0 && length > pageBounds.characters)) break
    count++
  }
  return { ...request, items: items.slice(0, count), more: items.length > count }
}
