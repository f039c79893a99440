import type { Orders } from '../core/orders/operations.ts'
import type { Payments } from '../core/payments/operations.ts'
import type { Tokens } from '../core/tokens/operations.ts'
import type { Users } from '../core/users/operations.ts'
import type { Links } from './links.ts'
import { serveOrders } from './orders.ts'
import { servePayments } from './payments.ts'
import { prefixes, type RestServer } from './request.ts'
import { serveTokens } from './tokens.ts'
import { serveUsers } from './users.ts'

export interface RestOperations {
  readonly users: Users
  readonly orders: Orders
  readonly payments: Payments
  readonly tokens: Tokens
}

/** Serves every resource, at the root and below `/api`. */
export function serveRest(
  server: Omit<RestServer, 'prefix'>,
  { users, orders, payments, tokens }: RestOperations,
  links: Links,
): void {
  for (const prefix of prefixes) {
    const rest = { ...server, prefix }
    serveUsers(rest, users, links)
    serveOrders(rest, orders, payments, links)
    servePayments(rest, payments, links)
    serveTokens(rest, tokens)
  }
}
