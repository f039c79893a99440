/** A part of a list, with the request for it, and a flag that tells whether more items follow. */
export type Page<Item, Request extends PageRequest = PageRequest> = Request & {
  readonly items: readonly Item[]
  readonly more: boolean
}

export interface PageRequest {
  readonly limit: number
  readonly offset: number
  /** Only items that follow this id are listed, whether or not there is an item with it. Then `offset` is 0. */
  readonly after?: number
  readonly sort?: Sort
}

/** Ids ascend, as without it, or descend: then the newest item is the first. */
export type Sort = (typeof sorts)[number]
export const sorts = ['id', '-id'] as const

/** `offset` is bounded because skipping rows costs work. */
export const pageBounds = Object.freeze({ limit: 1000, offset: 100_000 })

/**
 * Makes a page from items that were read with one more than the limit. It has as many as the limit while there are more:
 * a client that counts on with `offset` would miss items otherwise. So each item must be small.
 */
export function pageOf<Item, Request extends PageRequest>(
  items: readonly Item[],
  request: Request,
): Page<Item, Request> {
  return { ...request, items: items.slice(0, request.limit), more: items.length > request.limit }
}
