import { orderBounds, orderStatuses } from '../../core/orders/order.ts'
import { pageBounds } from '../../core/page.ts'
import { type Profile, userBounds } from '../../core/users/user.ts'
import { answerHeaders, failure } from '../../server/openapi/parts.ts'

const id = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER }
const name = { type: 'string', maxLength: userBounds.name, pattern: '\\S', description: 'Not blank.' }
const userName = { ...name, description: 'Not blank, and without control characters (`\\p{Cc}`).' }
const email = {
  type: 'string',
  maxLength: userBounds.email,
  pattern: '^[^\\s\\u0000-\\u001f\\u007f-\\u009f]*@[^\\s\\u0000-\\u001f\\u007f-\\u009f]*$',
  description: 'Contains an `@`, but no whitespace and no control characters.',
}
/** The optional fields of a user in a response, where they are present only if they are set. */
const profile = {
  age: { type: 'integer', minimum: 0, maximum: userBounds.age },
  avatar: {
    type: 'string',
    maxLength: userBounds.avatar,
    pattern: '^[Hh][Tt][Tt][Pp][Ss]?://',
    description: 'An http or https address, without control characters.',
  },
} satisfies Readonly<Record<keyof Profile, object>>
/** The same fields in a request, where `null` means no value. */
const optional = Object.fromEntries(
  Object.entries(profile).map(([name, schema]) => [name, { ...schema, type: [schema.type, 'null'] }]),
)
const password = {
  minLength: userBounds.password.least,
  maxLength: userBounds.password.most,
  writeOnly: true,
  description: 'Lets the user log in. Changing an existing password needs a token of that user or of an admin.',
}

const status = { enum: orderStatuses }
const price = { type: 'integer', minimum: 0, maximum: orderBounds.price, description: 'Price of one piece.' }
const item = {
  name: { ...name, maxLength: orderBounds.name },
  quantity: { type: 'integer', minimum: 1, maximum: orderBounds.quantity },
  price,
}
const instant = {
  type: 'string',
  format: 'date-time',
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
}
const amount = { type: 'number', exclusiveMinimum: 0, maximum: 1_000_000_000_000 }
const link = {
  type: 'object',
  required: ['href'],
  properties: {
    href: { type: 'string' },
    method: { enum: ['GET', 'POST', 'DELETE'], description: 'If absent, the method is GET.' },
  },
}

/** The schemas of request and response bodies. */
export const restSchemas = {
  User: {
    type: 'object',
    description: 'A user. Fields that are not required are present only if they are set.',
    required: ['id', 'name', 'email'],
    properties: { id, name: userName, email, ...profile },
  },
  UserInput: {
    type: 'object',
    description: 'All fields of a user. `null` for an optional field means the same as leaving it out.',
    required: ['name', 'email'],
    properties: { name: userName, email, ...optional, password: { type: ['string', 'null'], ...password } },
  },
  UserChanges: {
    type: 'object',
    description: 'The fields to change. `null` removes an optional field.',
    properties: { name: userName, email, ...optional, password: { type: 'string', ...password } },
  },
  Order: {
    type: 'object',
    description: 'An order. Its links are the actions that its status allows.',
    required: ['id', 'status', 'amount', '_links'],
    properties: {
      id,
      status,
      amount: { type: 'integer', minimum: 1, maximum: orderBounds.amount },
      _links: {
        type: 'object',
        description: '`pay` and `cancel` until the order is paid, `track` after it is shipped.',
        required: ['self'],
        properties: { self: link, pay: link, cancel: link, track: link },
      },
    },
  },
  OrderInput: {
    type: 'object',
    required: ['items'],
    properties: {
      items: {
        type: 'array',
        minItems: 1,
        maxItems: orderBounds.items,
        description: `The sum of quantity times price is at least 1 and at most ${orderBounds.amount}.`,
        items: { type: 'object', required: ['name', 'quantity', 'price'], properties: item },
      },
    },
  },
  OrderItem: {
    type: 'object',
    required: ['id', 'name', 'quantity', 'price'],
    properties: { id, ...item },
  },
  Tracking: {
    type: 'object',
    required: ['order_id', 'carrier', 'number', 'shipped_at'],
    properties: { order_id: id, carrier: { type: 'string' }, number: { type: 'string' }, shipped_at: instant },
  },
  Payment: {
    type: 'object',
    required: ['id', 'amount', 'order_id', 'created_at'],
    properties: {
      id,
      amount,
      order_id: {
        ...id,
        type: ['integer', 'null'],
        description: 'The order that was paid, if the payment is for an order.',
      },
      created_at: instant,
    },
  },
  PaymentInput: {
    type: 'object',
    required: ['amount'],
    properties: {
      amount: { ...amount, description: 'At most two decimals, in any notation. The value is stored exactly.' },
    },
  },
  Credentials: {
    type: 'object',
    required: ['email', 'password'],
    properties: {
      email: { type: 'string', minLength: 1, maxLength: userBounds.email, description: 'Not case-sensitive.' },
      password: { type: 'string', minLength: 1, writeOnly: true },
    },
  },
  Token: {
    type: 'object',
    required: ['token'],
    properties: {
      token: {
        type: 'string',
        pattern: '^[\\w-]+\\.[\\w-]+\\.[\\w-]+$',
        description: 'A JSON Web Token, to be sent as `Authorization: Bearer <token>`.',
      },
    },
  },
} as const

export const tagHeader = { ETag: { $ref: '#/components/headers/ETag' } }

export const restResponses = {
  UserNotFound: failure('There is no such user.', ['User not found']),
  OrderNotFound: failure('There is no such order, or the caller may not see it.', ['Order not found']),
  PaymentNotFound: failure('There is no such payment, or the caller may not see it.', ['Payment not found']),
  NotModified: {
    description: 'The client has the current representation already.',
    headers: answerHeaders(tagHeader),
  },
  UserConditionUnmet: failure('The condition of the request is not met. Nothing is changed.', [
    'The user has changed',
    'The user exists already',
  ]),
  OrderConditionUnmet: failure('The condition of the request is not met. Nothing is changed.', [
    'The order has changed',
  ]),
  EmailTaken: failure('Another user with a password has this e-mail.', ['Email is already in use']),
}

const inPath = (description: string) => ({
  name: 'id',
  in: 'path',
  required: true,
  description,
  schema: id,
  example: 1,
})

const keyHeader = {
  name: 'Idempotency-Key',
  in: 'header',
  schema: { type: 'string', minLength: 1, maxLength: 257, pattern: '^[\\x21-\\x7e]+$' },
  example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
}

// No example: Swagger UI would send it, and no resource has that tag.
const conditionHeader = { in: 'header', schema: { type: 'string', minLength: 1 } }

export const restParameters = {
  UserId: inPath("The user's id."),
  OrderId: inPath("The order's id."),
  PaymentId: inPath("The payment's id."),
  IdempotencyKey: {
    ...keyHeader,
    required: true,
    description:
      'Identifies this payment: 1 to 255 visible ASCII characters, not counting surrounding quotes. For example a UUID.',
  },
  IfMatch: {
    ...conditionHeader,
    name: 'If-Match',
    description:
      'Entity tags from `ETag` with their quotes, or `*`. The write is done only if the current representation has one ' +
      'of them, or with `*` if there is one at all. So no change of others is overwritten. Weak tags match nothing.',
  },
  IfNoneMatch: {
    ...conditionHeader,
    name: 'If-None-Match',
    description: '`*`: the write is done only if there is no such resource. Entity tags: only if it has none of them.',
  },
  KnownTags: {
    ...conditionHeader,
    name: 'If-None-Match',
    description:
      'Entity tags of representations that the client has. With the current one among them the answer is 304.',
  },
  OptionalIdempotencyKey: { ...keyHeader, description: 'With a key, the request can be repeated safely.' },
}

function inQuery(name: string, description: string, schema: object): object {
  return { name, in: 'query', description, schema }
}

const whole = (minimum: number, maximum: number) => ({ type: 'integer', minimum, maximum })

/** The parameters of every list. */
export const paging = [
  inQuery('limit', 'Maximum number of items.', { ...whole(1, pageBounds.limit), default: pageBounds.limit }),
  // No default: Swagger UI would send it, also together with `after`.
  inQuery('offset', 'Number of items to skip. If absent, none.', whole(0, pageBounds.offset)),
  inQuery('after', 'Lists only items with larger ids. Not together with `offset`.', id),
]

export const badCondition = 'If-Match must be * or a list of entity tags in quotes'

/** The error messages about the parameters of a list. */
export const badPage = [
  'limit must be an integer from 1 to 1000',
  'after must be an integer from 1 to 9007199254740991',
  'after and offset cannot be used together',
]

/** The parameters that select some items of a list. */
export const filters = {
  email: inQuery('email', 'Only users with this e-mail, in any case of letters. Write a `+` as `%2B`.', email),
  status: inQuery('status', 'Only orders with this status.', status),
}

export const restHeaders = {
  UserLocation: {
    description: 'The path of the created user.',
    schema: { type: 'string' },
    example: '/users/6',
  },
  OrderLocation: { description: 'The path of the created order.', schema: { type: 'string' }, example: '/orders/7' },
  PaymentLocation: { description: 'The path of the payment.', schema: { type: 'string' }, example: '/payments/17' },
  PaymentLink: {
    description: 'RFC 8288: the link to the payment of the order.',
    schema: { type: 'string' },
    example: '</payments/3>; rel="payment"',
  },
  Replayed: {
    description: 'Present if the key was used before, so that nothing was paid by this request.',
    schema: { const: 'true' },
    example: 'true',
  },
  ETag: {
    description:
      'Identifies this representation (RFC 9110). The same representation has the same tag on every instance.',
    schema: { type: 'string', pattern: '^"[\\w.-]+"$' },
    example: '"4r8yl0kJ2vQWmXh5c1uT3A"',
  },
  Pages: {
    description:
      'RFC 8288: the links `next`, `prev` (if `offset` was sent) and `first`, if there are other pages. Follow `next` ' +
      'to read a whole list: items that are created or deleted meanwhile do not move the others.',
    schema: { type: 'string' },
    example: '</users?limit=2&after=2>; rel="next", </users?limit=2&offset=0>; rel="first"',
  },
}

export const restComponents = {
  schemas: restSchemas,
  responses: restResponses,
  parameters: restParameters,
  headers: restHeaders,
}

export function answer(name: keyof typeof restResponses): object {
  return { $ref: `#/components/responses/${name}` }
}

export function parameter(name: keyof typeof restParameters): object {
  return { $ref: `#/components/parameters/${name}` }
}

export function schema(name: keyof typeof restSchemas): object {
  return { $ref: `#/components/schemas/${name}` }
}

/** A JSON body, with one or more named examples. */
export function json(schema: object, examples: Readonly<Record<string, unknown>>): object {
  const named = Object.entries(examples).map(([name, value]) => [name, { value }])
  return { 'application/json': { schema, examples: Object.fromEntries(named) } }
}
