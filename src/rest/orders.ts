import type { FastifyRequest } from 'fastify'
import type { Orders } from '../core/orders/operations.ts'
import type { Order } from '../core/orders/order.ts'
import type { Payments } from '../core/payments/operations.ts'
import { decodeCondition, sendRevised } from './conditions.ts'
import { decodeItems, decodeOrderList } from './decode/orders.ts'
import { decodeKey } from './decode/payments.ts'
import type { Links } from './links.ts'
import { orderOperations } from './openapi/orders.ts'
import { accessCheck, keyCheck, markReplay } from './payments.ts'
import { headerOf, idIn, queryOf, type RestServer } from './routes.ts'

export interface OrdersCore {
  readonly orders: Orders
  readonly payments: Payments
}

/**
 * `/users/<id>/orders` and `/orders`. Each route decodes the request, calls one operation and builds the response, with
 * the links that the status of the order allows.
 */
export function serveOrders(
  { server, authenticate, prefix }: RestServer,
  { orders, payments }: OrdersCore,
  links: Links,
): void {
  const ofUser = `${prefix}/users/:id/orders`
  const path = `${prefix}/orders/:id`
  const options = (name: keyof typeof orderOperations) => ({
    onRequest: authenticate,
    config: { operation: orderOperations[name] },
  })
  const represent = (order: Order) => ({ ...order, _links: links.ofOrder(order) })

  server.get(ofUser, options('list'), async (request, reply) => {
    const userId = idIn(request)
    const page = await orders.listOf(request.actor, userId, () => decodeOrderList(queryOf(request)))
    const pages = links.pages(`/users/${userId}/orders`, page, { status: page.status })
    if (pages !== undefined) reply.header('link', pages)
    return page.items.map(represent)
  })

  server.post(ofUser, options('create'), async (request, reply) => {
    const order = await orders.create(request.actor, idIn(request), () => decodeItems(request.body))
    reply.code(201).header('location', links.order(order.id))
    return represent(order)
  })

  server.get(path, options('read'), async (request, reply) =>
    sendRevised(request, reply, await orders.read(request.actor, idIn(request)), represent, links.mark),
  )

  server.get(`${path}/items`, options('items'), async request => orders.items(request.actor, idIn(request)))

  server.get(`${path}/tracking`, options('tracking'), async request => {
    const { orderId, carrier, number, shippedAt } = await orders.tracking(request.actor, idIn(request))
    return { order_id: orderId, carrier, number, shipped_at: shippedAt }
  })

  const keyOf = (request: FastifyRequest) =>
    decodeKey(headerOf(request, 'idempotency-key'), `/orders/${idIn(request)}/payment`)
  const paying = {
    ...options('pay'),
    onRequest: [authenticate, accessCheck(payments, 'pay an order'), keyCheck(keyOf)],
  }
  server.post(`${path}/payment`, paying, async (request, reply) => {
    const { order, payment, replayed } = await payments.payOrder(
      request.actor,
      idIn(request),
      () => keyOf(request),
      () => decodeCondition(request, links.mark),
    )
    reply.header('link', `<${links.payment(payment.id)}>; rel="payment"`)
    markReplay(reply, replayed)
    return represent(order)
  })

  server.delete(path, options('cancel'), async (request, reply) => {
    await orders.cancel(request.actor, idIn(request), () => decodeCondition(request, links.mark))
    return reply.code(204).send()
  })
}
