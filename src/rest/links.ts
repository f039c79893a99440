import type { Page } from '../core/page.ts'

/** Addresses of resources as the specification writes them, behind a prefix where a gateway publishes another path. */
export class Links {
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  user(id: number): string {
    return `${this.#prefix}/users/${id}`
  }

  /** RFC 8288, when a list has more than one page. */
  pages(path: string, { limit, offset, more }: Page<unknown>): string | undefined {
    if (!more && offset === 0) return undefined
    const link = (from: number, rel: string) => `<${this.#prefix}${path}?limit=${limit}&offset=${from}>; rel="${rel}"`
    return [
      ...(more ? [link(offset + limit, 'next')] : []),
      ...(offset > 0 ? [link(Math.max(0, offset - limit), 'prev')] : []),
      link(0, 'first'),
    ].join(', ')
  }
}
