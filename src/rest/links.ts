import { hash } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import { actionsOf, type Order, type OrderAction } from '../core/orders/order.ts'
import type { Page } from '../core/page.ts'

/** The paths of resources as in the specification, after a prefix if a gateway publishes the API below another path. */
export class Links {
  readonly #prefix: string
  /** The end of the `ETag` of resources with links, because links depend on the prefix. */
  readonly mark: string

  constructor(prefix: string) {
    this.#prefix = prefix
    this.mark = prefix === '' ? '' : `.${hash('sha256', prefix, 'base64url').slice(0, 8)}`
  }

  to(kind: 'users' | 'orders' | 'payments', id: number): string {
    return `${this.#prefix}/${kind}/${id}`
  }

  /** The link to an order itself, and the links to the actions that its status allows. */
  ofOrder({ id, status }: Order): Readonly<Record<string, Link>> {
    const self = this.to('orders', id)
    const actions = actionsOf[status].map(action => [action, actionLinks[action](self)] as const)
    return { self: { href: self }, ...Object.fromEntries(actions) }
  }

  /**
   * Sets the `Link` header (RFC 8288) of a list, if it has more than one page. The next page starts after the last item of
   * this one, so that no item is missed or listed twice if others are created or deleted meanwhile. A filter that was not
   * sent is undefined.
   */
  addPages(
    reply: FastifyReply,
    path: string,
    { items, limit, offset, after, sort, more }: Page<{ readonly id: number }>,
    filter: Readonly<Record<string, string | undefined>> = {},
  ): void {
    const last = items.at(-1)
    if (!more && offset === 0 && after === undefined) return
    const filters = Object.entries({ ...filter, sort }).map(
      ([name, value]) => value && `${name}=${encodeURIComponent(value)}&`,
    )
    const list = `${this.#prefix}${path}?${filters.join('')}limit=${limit}`
    const link = (from: string, rel: string) => `<${list}&${from}>; rel="${rel}"`
    const links = [
      ...(more && last !== undefined ? [link(`after=${last.id}`, 'next')] : []),
      ...(offset > 0 ? [link(`offset=${Math.max(0, offset - limit)}`, 'prev')] : []),
      link('offset=0', 'first'),
    ]
    reply.header('link', links.join(', '))
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
