import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { Payments } from '../core/payments/operations.ts'
import type { Payment } from '../core/payments/payment.ts'
import { sendRevised } from './conditions.ts'
import { decodeCents, decodeRequiredKey } from './decode/payments.ts'
import type { Links } from './links.ts'
import { paymentOperations } from './openapi/payments.ts'
import { headerOf, idIn, type RestServer } from './routes.ts'

/** `/payments`. Each route decodes the request, calls one operation and builds the response. */
export function servePayments({ server, authenticate, prefix }: RestServer, payments: Payments, links: Links): void {
  const path = `${prefix}/payments`
  const keyOf = (request: FastifyRequest) => decodeRequiredKey(headerOf(request, 'idempotency-key'), '/payments')
  const creating = {
    onRequest: [authenticate, accessCheck(payments, 'make a payment'), keyCheck(keyOf)],
    config: { operation: paymentOperations.create },
  }
  server.post(path, creating, async (request, reply) => {
    const { payment, replayed } = await payments.pay(
      request.actor,
      () => keyOf(request),
      () => decodeCents(request.body),
    )
    if (!replayed) reply.code(201).header('location', links.payment(payment.id))
    markReplay(reply, replayed)
    return represent(payment)
  })

  const reading = { onRequest: authenticate, config: { operation: paymentOperations.read } }
  server.get(`${path}/:id`, reading, async (request, reply) =>
    sendRevised(request, reply, await payments.read(request.actor, idIn(request)), represent),
  )
}

/** Refuses a caller that needs a token and has none, before the body is read. */
export function accessCheck(
  payments: Payments,
  operation: Parameters<Payments['checkAccess']>[1],
): onRequestHookHandler {
  return (request, _reply, next) => {
    payments.checkAccess(request.actor, operation)
    next()
  }
}

/** Refuses a key that is missing or malformed before the body is read, whatever the body is. */
export function keyCheck(keyOf: (request: FastifyRequest) => unknown): onRequestHookHandler {
  return (request, _reply, next) => {
    keyOf(request)
    next()
  }
}

export function markReplay(reply: FastifyReply, replayed: boolean): void {
  if (replayed) reply.header('idempotent-replayed', 'true')
}

function represent({ id, amountCents, orderId, createdAt }: Payment): object {
  return { id, amount: amountCents / 100, order_id: orderId, created_at: createdAt }
}
