import type { FastifyRequest } from 'fastify'
import { badInput, type Fields, integer, isObject, nonBlankText } from '../core/input.ts'
import { type Order, type OrderItem, type OrderListRequest, orderBounds, orderStatuses } from '../core/orders/order.ts'
import { decodeCondition, sendRevised } from './conditions.ts'
import { checkFirst, decodeKey } from './payments.ts'
import { decodePage, fieldsOf, idIn, oneOf, type Rest } from './request.ts'

/** `/users/<id>/orders` and `/orders`. Each answer has the links that the status of the order allows. */
export function serveOrders({ server, authenticate, orders, payments, links }: Rest): void {
  const options = { onRequest: authenticate }
  const represent = (order: Order) => {
    const { createdAt, userId, ...rest } = order
    return { ...rest, created_at: createdAt, user_id: userId, _links: links.ofOrder(order) }
  }

  server.get('/users/:id/orders', options, async (request, reply) => {
    const userId = idIn(request)
    const page = await orders.listOf(request.actor, userId, () => decodeOrderList(request.query as Fields))
    links.addPages(reply, `/users/${userId}/orders`, page, { status: page.status })
    return page.items.map(represent)
  })

  server.get('/orders', options, async (request, reply) => {
    const page = await orders.listAll(request.actor, () => decodeOrderList(request.query as Fields))
    links.addPages(reply, '/orders', page, { status: page.status })
    return page.items.map(represent)
  })

  server.post('/users/:id/orders', options, async (request, reply) => {
    const order = await orders.create(request.actor, idIn(request), () => decodeItems(request.body))
    reply.code(201).header('location', links.to('orders', order.id))
    return represent(order)
  })

  server.get('/orders/:id', options, async (request, reply) =>
    sendRevised(request, reply, await orders.read(request.actor, idIn(request)), represent, links.mark),
  )

  server.get('/orders/:id/items', options, async request => orders.items(request.actor, idIn(request)))

  server.get('/orders/:id/tracking', options, async request => {
    const { orderId, carrier, number, shippedAt } = await orders.tracking(request.actor, idIn(request))
    return { order_id: orderId, carrier, number, shipped_at: shippedAt }
  })

  const keyOf = (request: FastifyRequest) => decodeKey(request, `/orders/${idIn(request)}/payment`)
  const paying = { onRequest: [authenticate, checkFirst(payments, 'pay an order', keyOf)] }
  server.post('/orders/:id/payment', paying, async (request, reply) => {
    const { order, payment, replayed } = await payments.payOrder(
      request.actor,
      idIn(request),
      () => keyOf(request),
      () => decodeCondition(request, links.mark),
    )
    reply.header('link', `<${links.to('payments', payment.id)}>; rel="payment"`)
    if (replayed) reply.header('idempotent-replayed', 'true')
    return represent(order)
  })

  server.delete('/orders/:id', options, async (request, reply) => {
    await orders.cancel(request.actor, idIn(request), () => decodeCondition(request, links.mark))
    return reply.code(204).send()
  })
}

function decodeOrderList(query: Fields): OrderListRequest {
  const page = decodePage(query)
  return query.status === undefined ? page : { ...page, status: oneOf('status', query.status, orderStatuses) }
}

function decodeItems(body: unknown): readonly OrderItem[] {
  const { items } = fieldsOf(body)
  if (!Array.isArray(items) || items.length < 1 || items.length > orderBounds.items) {
    throw badInput(`items must be a list of 1 to ${orderBounds.items} items`)
  }
  return items.map((item: unknown, index) => itemOf(`items[${index}]`, item))
}

function itemOf(place: string, item: unknown): OrderItem {
  if (!isObject(item)) throw badInput(`${place} must be an object`)
  return {
    name: nonBlankText(`${place}.name`, item.name, orderBounds.name),
    quantity: integer(`${place}.quantity`, item.quantity, 1, orderBounds.quantity),
    price: integer(`${place}.price`, item.price, 0, orderBounds.price),
  }
}
