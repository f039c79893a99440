import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import { badInput, type Fields } from '../core/input.ts'
import type { Payments } from '../core/payments/operations.ts'
import { mostCents, type Payment } from '../core/payments/payment.ts'
import type { IdempotencyKey } from '../core/store.ts'
import { sendRevised } from './conditions.ts'
import { decodePage, fieldsOf, idIn, type Rest } from './request.ts'

/** `/payments`. Each route decodes the request, calls one operation and builds the response. */
export function servePayments({ server, authenticate, payments, links }: Rest): void {
  server.get('/payments', { onRequest: authenticate }, async (request, reply) => {
    const page = await payments.list(request.actor, () => decodePage(request.query as Fields))
    links.addPages(reply, '/payments', page)
    return page.items.map(represent)
  })

  const keyOf = (request: FastifyRequest) => {
    const key = decodeKey(request, '/payments')
    if (key === undefined) throw badInput('Idempotency-Key header required')
    return key
  }
  const creating = { onRequest: [authenticate, checkFirst(payments, 'make a payment', keyOf)] }
  server.post('/payments', creating, async (request, reply) => {
    const { payment, replayed } = await payments.pay(
      request.actor,
      () => keyOf(request),
      () => decodeCents(request.body),
    )
    if (!replayed) reply.code(201).header('location', links.to('payments', payment.id))
    if (replayed) reply.header('idempotent-replayed', 'true')
    return represent(payment)
  })

  server.get('/payments/:id', { onRequest: authenticate }, async (request, reply) =>
    sendRevised(request, reply, await payments.read(request.actor, idIn(request)), represent),
  )
}

/** Refuses before the body is read, whatever it is: a caller without a needed token, then a missing or malformed key. */
export function checkFirst(
  payments: Payments,
  operation: Parameters<Payments['checkAccess']>[1],
  keyOf: (request: FastifyRequest) => unknown,
): onRequestHookHandler {
  return (request, _reply, next) => {
    payments.checkAccess(request.actor, operation)
    keyOf(request)
    next()
  }
}

function represent({ id, amountCents, orderId, createdAt }: Payment): object {
  return { id, amount: amountCents / 100, order_id: orderId, created_at: createdAt }
}

/**
 * The amount in the body of a payment, in hundredths. Every number of up to 10^12 with two decimals maps exactly to one
 * integer. Only the value of an amount matters, not its notation: 1e2 and 1.100 are valid, because they need at most
 * two decimals.
 */
export function decodeCents(body: unknown): number {
  const { amount } = fieldsOf(body)
  const cents = typeof amount === 'number' ? Math.round(amount * 100) : Number.NaN
  if (cents >= 1 && cents <= mostCents && cents / 100 === amount) return cents
  throw badInput('amount must be a number above 0, at most 1000000000000, with at most two decimals')
}

/**
 * The key in the header, if it is not empty: visible ASCII, with or without quotes. It is valid only for the path that it
 * is sent to.
 */
export function decodeKey({ headers }: FastifyRequest, scope: string): IdempotencyKey | undefined {
  const key = headers['idempotency-key']?.toString().replace(/^"(.*)"$/, '$1')
  if (key === undefined || /^[ \t]*$/.test(key)) return undefined
  // If the header is sent twice, its values arrive joined by a comma and a space (at the end if one of them is empty).
  // This check rejects that.
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return { scope, key }
  throw badInput('Idempotency-Key must be one value of 1 to 255 visible ASCII characters')
}
