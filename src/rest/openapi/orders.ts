import type { OpenApiOperation } from '../../server/openapi/document.ts'
import { always, answerHeaders, failure, response, tokenOptional, withBody } from '../../server/openapi/parts.ts'
import { keyMalformed } from './payments.ts'
import {
  answer,
  badCondition,
  badPage,
  filters,
  json,
  paging,
  parameter,
  restParameters,
  schema,
  tagHeader,
} from './schemas.ts'

const tags = ['Orders'] as const
const pending = {
  id: 1,
  status: 'pending_payment',
  amount: 200,
  _links: {
    self: { href: '/orders/1' },
    pay: { href: '/orders/1/payment', method: 'POST' },
    cancel: { href: '/orders/1', method: 'DELETE' },
  },
}
const shipped = {
  id: 1,
  status: 'shipped',
  amount: 200,
  _links: { self: { href: '/orders/1' }, track: { href: '/orders/1/tracking', method: 'GET' } },
}
const items = [
  { name: 'Punched cards, box of 500', quantity: 2, price: 40 },
  { name: 'Brass gear, 40 teeth', quantity: 1, price: 120 },
]
const tracking = {
  order_id: 2,
  carrier: 'Difference Express',
  number: 'DX00000002',
  shipped_at: '2026-01-31T12:00:00.000Z',
}

const ofUser = [{ $ref: '#/components/parameters/UserId' }]
const byId = [{ $ref: '#/components/parameters/OrderId' }]
const hidden = 'Under the policy `enforced` only its user and admins can see an order.'

/** The OpenAPI operations on orders. */
export const orderOperations = {
  list: {
    operationId: 'listOrders',
    summary: 'List the orders of a user',
    description: 'Sorted by id. Under the policy `enforced`, only for that user and for admins.',
    tags,
    security: tokenOptional,
    parameters: [...ofUser, ...paging, filters.status],
    responses: {
      200: {
        description: 'A page of orders.',
        headers: answerHeaders({ Link: { $ref: '#/components/headers/Pages' } }),
        content: json({ type: 'array', items: schema('Order') }, { one: [pending], none: [] }),
      },
      400: failure('The request is malformed.', [...badPage, 'status must be one of pending_payment, shipped']),
      401: response('Unauthenticated'),
      403: response('Forbidden'),
      404: answer('UserNotFound'),
      ...always,
    },
  },
  create: {
    operationId: 'createOrder',
    summary: 'Create an order',
    description:
      'The amount is the sum of quantity times price. Under the policy `enforced`, only for that user and for admins.',
    tags,
    security: tokenOptional,
    parameters: ofUser,
    requestBody: { required: true, content: json(schema('OrderInput'), { items: { items } }) },
    responses: {
      201: {
        description: 'The created order, not yet paid.',
        headers: answerHeaders({ Location: { $ref: '#/components/headers/OrderLocation' } }),
        content: json(schema('Order'), { pending }),
      },
      400: failure('The request is malformed, or a value in it is wrong.', [
        'items must be a list of 1 to 100 items',
        'items[0].quantity must be an integer from 1 to 10000',
        'The sum of all items must be from 1 to 1000000000000',
        'Request body must be a JSON object',
        'Request body is not valid JSON',
      ]),
      401: response('Unauthenticated'),
      403: response('Forbidden'),
      404: answer('UserNotFound'),
      ...withBody,
      ...always,
    },
  },
  read: {
    operationId: 'readOrder',
    summary: 'Read an order and its possible actions',
    description: `Follow \`_links\` instead of building paths: they contain the actions that the status allows. ${hidden}`,
    tags,
    security: tokenOptional,
    parameters: [...byId, parameter('KnownTags')],
    responses: {
      200: {
        description: 'The order.',
        headers: answerHeaders(tagHeader),
        content: json(schema('Order'), { pending, shipped }),
      },
      304: answer('NotModified'),
      400: response('BadRequest'),
      401: response('Unauthenticated'),
      404: answer('OrderNotFound'),
      ...always,
    },
  },
  items: {
    operationId: 'listOrderItems',
    summary: 'List the items of an order',
    description: hidden,
    tags,
    security: tokenOptional,
    parameters: byId,
    responses: {
      200: {
        description: 'The items, as they were ordered.',
        headers: answerHeaders(),
        content: json(
          { type: 'array', items: schema('OrderItem') },
          { two: items.map((item, index) => ({ id: index + 1, ...item })) },
        ),
      },
      400: response('BadRequest'),
      401: response('Unauthenticated'),
      404: answer('OrderNotFound'),
      ...always,
    },
  },
  tracking: {
    operationId: 'readTracking',
    summary: 'Track a shipped order',
    description: hidden,
    tags,
    security: tokenOptional,
    parameters: [{ ...restParameters.OrderId, example: 2 }],
    responses: {
      200: {
        description: 'The tracking record.',
        headers: answerHeaders(),
        content: json(schema('Tracking'), { tracking }),
      },
      400: response('BadRequest'),
      401: response('Unauthenticated'),
      404: failure('There is no such order, or it is not shipped.', ['Order not found', 'Order is not shipped yet']),
      ...always,
    },
  },
  pay: {
    operationId: 'payOrder',
    summary: "Pay an order's amount and ship it",
    description:
      'Stores the payment, sets the status to `shipped` and creates the tracking record, all or nothing. No body is ' +
      'needed; a body is ignored. If an `Idempotency-Key` was sent, a repeated request with it gets the same answer as ' +
      `the first, with the current order, whatever \`If-Match\` is; without a key it gets 409. ${hidden}`,
    tags,
    security: tokenOptional,
    parameters: [...byId, { $ref: '#/components/parameters/OptionalIdempotencyKey' }, parameter('IfMatch')],
    responses: {
      200: {
        description: 'The order is paid and shipped.',
        headers: answerHeaders({
          Link: { $ref: '#/components/headers/PaymentLink' },
          'Idempotent-Replayed': { $ref: '#/components/headers/Replayed' },
        }),
        content: json(schema('Order'), { shipped }),
      },
      400: failure('The request is malformed.', [keyMalformed, badCondition, 'Request body is not valid JSON']),
      401: response('Unauthenticated'),
      404: answer('OrderNotFound'),
      409: failure('The order is already paid.', ['Order is already paid']),
      412: answer('OrderConditionUnmet'),
      ...withBody,
      ...always,
    },
  },
  cancel: {
    operationId: 'cancelOrder',
    summary: 'Cancel an order that is not paid',
    description:
      'Deletes the order and its items. Cancelling an absent order succeeds. Under the policy `enforced`, cancelling an ' +
      'order of another user also succeeds, but changes nothing.',
    tags,
    security: tokenOptional,
    parameters: [...byId, parameter('IfMatch')],
    responses: {
      204: { description: 'The order does not exist any more.', headers: answerHeaders() },
      400: failure('The request is malformed.', ['Malformed URL', 'One Host header required', badCondition]),
      401: response('Unauthenticated'),
      409: failure('The order is already shipped.', ['Order is already shipped']),
      412: answer('OrderConditionUnmet'),
      ...withBody,
      ...always,
    },
  },
} as const satisfies Readonly<Record<string, OpenApiOperation>>
