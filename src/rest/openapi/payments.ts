import type { OpenApiOperation } from '../../server/openapi/document.ts'
import { always, answerHeaders, failure, response, tokenOptional, withBody } from '../../server/openapi/parts.ts'
import { answer, json, parameter, schema, tagHeader } from './schemas.ts'

const tags = ['Payments'] as const
const payment = { id: 17, amount: 49.9, order_id: null, created_at: '2026-01-31T12:00:00.000Z' }
const ofOrder = { id: 3, amount: 200, order_id: 1, created_at: '2026-01-31T12:00:00.000Z' }

export const keyMalformed = 'Idempotency-Key must be one value of 1 to 255 visible ASCII characters'

/** The OpenAPI operations on payments. */
export const paymentOperations = {
  create: {
    operationId: 'createPayment',
    summary: 'Make a payment, once per key',
    description:
      'The first request with a key makes the payment and gets 201. Later requests with the same key, for 24 hours and ' +
      'with any body, get 200 and the stored payment; nothing more is paid. This also holds for concurrent requests. A ' +
      'request that fails does not use up its key: after a lost response or a 5xx, send the same request again. A key ' +
      'belongs to its caller: the same key of another user is a different key. All callers without a token share their ' +
      'keys. Fields other than `amount` are ignored. To pay an order, follow its `pay` link. Under the policy `enforced` ' +
      'a token is required.',
    tags,
    security: tokenOptional,
    parameters: [{ $ref: '#/components/parameters/IdempotencyKey' }],
    requestBody: {
      required: true,
      content: json(schema('PaymentInput'), { decimals: { amount: 49.9 }, whole: { amount: 50 } }),
    },
    responses: {
      200: {
        description: 'The key was used before. This is the stored payment.',
        headers: answerHeaders({ 'Idempotent-Replayed': { $ref: '#/components/headers/Replayed' } }),
        content: json(schema('Payment'), { payment }),
      },
      201: {
        description: 'The payment that was made.',
        headers: answerHeaders({ Location: { $ref: '#/components/headers/PaymentLocation' } }),
        content: json(schema('Payment'), { payment }),
      },
      400: failure('The key is missing or malformed, or the body is. Nothing is stored.', [
        'Idempotency-Key header required',
        keyMalformed,
        'amount must be a number above 0, at most 1000000000000, with at most two decimals',
        'Request body must be a JSON object',
        'Request body is not valid JSON',
      ]),
      401: response('Unauthenticated'),
      ...withBody,
      ...always,
    },
  },
  read: {
    operationId: 'readPayment',
    summary: 'Read a payment',
    description:
      'Under the policy `enforced` only the payer, the user of the order that it paid and admins can see a payment.',
    tags,
    security: tokenOptional,
    parameters: [parameter('PaymentId'), parameter('KnownTags')],
    responses: {
      200: {
        description: 'The payment.',
        headers: answerHeaders(tagHeader),
        content: json(schema('Payment'), { payment, 'of-an-order': ofOrder }),
      },
      304: answer('NotModified'),
      400: response('BadRequest'),
      401: response('Unauthenticated'),
      404: answer('PaymentNotFound'),
      ...always,
    },
  },
} as const satisfies Readonly<Record<string, OpenApiOperation>>
