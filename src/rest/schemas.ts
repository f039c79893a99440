import { failure } from '../server/openapi-parts.ts'

const id = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER }
const name = { type: 'string', maxLength: 320, pattern: '\\S', description: 'Not blank.' }
const email = {
  type: 'string',
  maxLength: 320,
  pattern: '^[^\\s\\u0000-\\u001f\\u007f-\\u009f]*@[^\\s\\u0000-\\u001f\\u007f-\\u009f]*$',
  description: 'Contains an `@`, and neither blanks nor control characters.',
}
const age = { minimum: 0, maximum: 150 }
const avatar = {
  maxLength: 2048,
  pattern: '^[Hh][Tt][Tt][Pp][Ss]?://',
  description: 'An http or https address.',
}
const password = {
  minLength: 8,
  maxLength: 128,
  writeOnly: true,
  description: 'Lets the user log in. Changing an existing one takes a token of that user or of an admin.',
}

const optional = {
  age: { type: ['integer', 'null'], ...age },
  avatar: { type: ['string', 'null'], ...avatar },
}

/** What the operations of this interface send and take. */
export const restSchemas = {
  User: {
    type: 'object',
    description: 'A user. `age` and `avatar` are there when they are set.',
    required: ['id', 'name', 'email'],
    properties: { id, name, email, age: { type: 'integer', ...age }, avatar: { type: 'string', ...avatar } },
  },
  UserInput: {
    type: 'object',
    description: 'A whole user. `null` for an optional field means that it is not there.',
    required: ['name', 'email'],
    properties: { name, email, ...optional, password: { type: ['string', 'null'], ...password } },
  },
  UserChanges: {
    type: 'object',
    description: 'The fields to change. `null` removes `age` or `avatar`.',
    properties: { name, email, ...optional, password: { type: 'string', ...password } },
  },
  Credentials: {
    type: 'object',
    required: ['email', 'password'],
    properties: {
      email: { type: 'string', minLength: 1, maxLength: 320, description: 'Compared without regard to case.' },
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

export const restResponses = {
  UserNotFound: failure('There is no such user.', ['User not found']),
  EmailTaken: failure('Another user who logs in has this e-mail.', ['Email is already in use']),
}

export const restParameters = {
  UserId: {
    name: 'id',
    in: 'path',
    required: true,
    description: "The user's id.",
    schema: id,
    example: 1,
  },
}

export const restHeaders = {
  UserLocation: {
    description: 'The path of the created user.',
    schema: { type: 'string' },
    example: '/users/6',
  },
  Pages: {
    description: 'RFC 8288: `next`, `prev` and `first`, when there is more than this page.',
    schema: { type: 'string' },
    example: '</users?limit=2&offset=2>; rel="next", </users?limit=2&offset=0>; rel="first"',
  },
}

export const restComponents = {
  schemas: restSchemas,
  responses: restResponses,
  parameters: restParameters,
  headers: restHeaders,
}

export function schema(name: keyof typeof restSchemas): object {
  return { $ref: `#/components/schemas/${name}` }
}

/** A body in JSON, with one example or several by name. */
export function json(schema: object, examples: Readonly<Record<string, unknown>>): object {
  const named = Object.entries(examples).map(([name, value]) => [name, { value }])
  return { 'application/json': { schema, examples: Object.fromEntries(named) } }
}
