import type { Duet } from './connect.ts'
import { DuetError } from './errors.ts'

/** A list that is read page by page. Iterating over it yields the items of all pages. */
export interface Pages<Item> extends AsyncIterable<Item> {
  /** Yields one page after the other. */
  pages(): AsyncIterableIterator<readonly Item[]>
  /** The first page, and whether there are more. */
  first(): Promise<{ readonly items: readonly Item[]; readonly more: boolean }>
  /** All items, or the first `most` ones. */
  toArray(most?: number): Promise<Item[]>
}

export interface PageOptions {
  /** The number of items per page: 1 to 1000. */
  readonly limit?: number
  /** Only items after the one with this id. */
  readonly after?: number
  /** `-id`: the newest items first. */
  readonly sort?: 'id' | '-id'
  readonly signal?: AbortSignal
}

interface PageOfRaw<Raw> {
  readonly items: readonly Raw[]
  readonly next: URL | undefined
}

/** A list of the service. The `Link` header leads to the next page. */
export function pagesOf<Raw, Item>(
  duet: Duet,
  path: string,
  { signal, ...query }: PageOptions & { readonly email?: string; readonly q?: string; readonly status?: string },
  itemOf: (raw: Raw) => Item,
): Pages<Item> {
  const read = async (target: string | URL): Promise<PageOfRaw<Raw>> => {
    const { body, headers } = await duet.request<readonly Raw[]>('GET', target, { signal, expect: 'json' })
    return { items: body, next: nextIn(headers.get('link'), duet.url) }
  }
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value))
  const start = `${path}?${given}`.replace(/\?$/, '')

  async function* pages() {
    const seen = new Set<string>()
    for (let target: string | URL | undefined = start; target !== undefined; ) {
      const page: PageOfRaw<Raw> = await read(target)
      yield page.items.map(itemOf)
      target = page.next
      if (target === undefined) return
      if (seen.has(target.href)) throw new DuetError('server', 'The pages of the list form a circle.')
      seen.add(target.href)
    }
  }
  async function* items() {
    for await (const page of pages()) yield* page
  }
  return {
    pages,
    [Symbol.asyncIterator]: items,
    async first() {
      const { items: found, next } = await read(start)
      return { items: found.map(itemOf), more: next !== undefined }
    },
    async toArray(most = Number.POSITIVE_INFINITY) {
      const found: Item[] = []
      if (most <= 0) return found
      for await (const item of items()) if (found.push(item) >= most) break
      return found
    },
  }
}

export function linkIn(header: string | null, name: string): string | undefined {
  const links = (header ?? '').matchAll(/<([^<>]*)>\s*;\s*rel="?([\w-]+)"?/g)
  return [...links].find(([, , rel]) => rel === name)?.[1]
}

function nextIn(header: string | null, base: string): URL | undefined {
  const next = linkIn(header, 'next')
  return next === undefined ? undefined : new URL(next, base)
}
