import { hash } from 'node:crypto'
import type { Order } from '../core/orders/order.ts'
import type { Payment } from '../core/payments/payment.ts'
import { type User, userFields } from '../core/users/user.ts'
import type { Row } from './sql.ts'

/** The revision of a resource: a hash of everything that is shown of it. */
export const revisionOf = {
  user: (user: User) => digest(userFields.map(field => user[field])),
  order: ({ id, status, amount, createdAt, userId }: Order) => digest([id, status, amount, createdAt, userId]),
  payment: ({ id, amountCents, orderId, createdAt }: Payment) => digest([id, amountCents, orderId, createdAt]),
}

function digest(values: Row): string {
  return hash('sha256', JSON.stringify(values), 'base64url').slice(0, 22) // 132 bits
}
