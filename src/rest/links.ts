import { actionsOf, type Order, type OrderAction } from '../core/orders/order.ts'
import type { Page } from '../core/page.ts'

/** The paths of resources as in the specification, after a prefix if a gateway publishes the API below another path. */
export class Links {
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  user(id: number): string {
    return `${this.#prefix}/users/${id}`
  }

  order(id: number): string {
    return `${this.#prefix}/orders/${id}`
  }

  payment(id: number): string {
    return `${this.#prefix}/payments/${id}`
  }

  /** The link to an order itself, and the links to the actions that its status allows. */
  ofOrder({ id, status }: Order): Readonly<Record<string, Link>> {
    const self = this.order(id)
    const actions = actionsOf[status].map(action => [action, actionLinks[action](self)] as const)
    return { self: { href: self }, ...Object.fromEntries(actions) }
  }

  /** The `Link` header (RFC 8288) of a list, if it has more than one page. */
  pages(path: string, { items, limit, offset, more }: Page<unknown>): string | undefined {
    if (!more && offset === 0) return undefined
    const link = (from: number, rel: string) => `<${this.#prefix}${path}?limit=${limit}&offset=${from}>; rel="${rel}"`
    return [
      ...(more ? [link(offset + items.length, 'next')] : []),
      ...(offset > 0 ? [link(Math.max(0, offset - limit), 'prev')] : []),
      link(0, 'first'),
    ].join(', ')
  }
}

export interface Link {
  readonly href: string
  readonly method?: string
}

const actionLinks: Readonly<Record<OrderAction, (self: string) => Link>> = {
  pay: self => ({ href: `${self}/payment`, method: 'POST' }),
  cancel: self => ({ href: self, method: 'DELETE' }),
  track: self => ({ href: `${self}/tracking`, method: 'GET' }),
}
