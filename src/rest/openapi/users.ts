import type { OpenApiOperation } from '../../server/openapi/document.ts'
import {
  always,
  answerHeaders,
  failure,
  response,
  tokenNeeded,
  tokenOptional,
  withBody,
} from '../../server/openapi/parts.ts'
import { answer, badCondition, badPage, filters, json, paging, parameter, schema, tagHeader } from './schemas.ts'

const tags = ['Users'] as const
const ada = { id: 1, name: 'Ada Lovelace', email: 'ada@example.com', age: 36 }
const grace = { id: 2, name: 'Grace Hopper', email: 'grace@example.com' }
const alan = { name: 'Alan Turing', email: 'alan@example.com' }
const withAvatar = { ...alan, age: 41, avatar: 'https://example.com/alan.png', password: 'a-long-password' }
const { password: _, ...shown } = withAvatar

const byId = [{ $ref: '#/components/parameters/UserId' }]
const malformed = ['Request body is not valid JSON', 'Request body must be a JSON object']
const onWriting = { ...withBody, ...always }

function user(description: string, examples: Readonly<Record<string, object>>, headers?: object): object {
  return { description, headers: answerHeaders(headers), content: json(schema('User'), examples) }
}

function created(examples: Readonly<Record<string, object>>): object {
  return user('The created user.', examples, { Location: { $ref: '#/components/headers/UserLocation' } })
}

function badInput(...sentences: readonly string[]): object {
  return failure('The request is malformed, or a value in it is wrong.', sentences)
}

/** The OpenAPI operations on users. */
export const userOperations = {
  list: {
    operationId: 'listUsers',
    summary: 'List users',
    description:
      'Sorted by id. A page has `limit` users while there are more. Under the policy `enforced`, only for admins.',
    tags,
    security: tokenOptional,
    parameters: [...paging, filters.email],
    responses: {
      200: {
        description: 'A page of users.',
        headers: answerHeaders({ Link: { $ref: '#/components/headers/Pages' } }),
        content: json({ type: 'array', items: schema('User') }, { two: [ada, grace], none: [] }),
      },
      400: badInput(...badPage, 'email must be an e-mail address'),
      401: response('Unauthenticated'),
      403: response('Forbidden'),
      ...always,
    },
  },
  create: {
    operationId: 'createUser',
    summary: 'Create a user',
    description:
      'The service assigns the id. Every caller may do this, under both policies, unless `SIGN_UP` is `closed`: then only ' +
      'admins may.',
    tags,
    security: tokenOptional,
    requestBody: { required: true, content: json(schema('UserInput'), { needed: alan, everything: withAvatar }) },
    responses: {
      201: created({ needed: { id: 6, ...alan }, everything: { id: 6, ...shown } }),
      400: badInput('Name and email required', 'age must be an integer from 0 to 150', ...malformed),
      401: response('Unauthenticated'),
      403: response('Forbidden'),
      409: answer('EmailTaken'),
      ...onWriting,
    },
  },
  readSelf: {
    operationId: 'readSelf',
    summary: 'Read the user of the token',
    tags,
    security: tokenNeeded,
    parameters: [parameter('KnownTags')],
    responses: {
      200: user('The authenticated user.', { ada }, tagHeader),
      304: answer('NotModified'),
      400: response('BadRequest'),
      401: response('Unauthenticated'),
      404: answer('UserNotFound'),
      ...always,
    },
  },
  read: {
    operationId: 'readUser',
    summary: 'Read a user',
    description: 'Under the policy `enforced`, only for that user and for admins.',
    tags,
    security: tokenOptional,
    parameters: [...byId, parameter('KnownTags')],
    responses: {
      200: user('The user.', { ada, grace }, tagHeader),
      304: answer('NotModified'),
      400: response('BadRequest'),
      401: response('Unauthenticated'),
      403: response('Forbidden'),
      404: answer('UserNotFound'),
      ...always,
    },
  },
  replace: {
    operationId: 'replaceUser',
    summary: 'Replace a user, or create one with this id',
    description:
      'Fields that are not sent are removed, except the password, which is kept. Under the policy `enforced`, only for ' +
      'that user and for admins. While `SIGN_UP` is `closed`, only admins create users.',
    tags,
    security: tokenOptional,
    parameters: [...byId, parameter('IfMatch'), parameter('IfNoneMatch')],
    requestBody: { required: true, content: json(schema('UserInput'), { needed: alan, everything: withAvatar }) },
    responses: {
      200: user('The replaced user.', { needed: { id: 1, ...alan }, everything: { id: 1, ...shown } }),
      201: created({ needed: { id: 6, ...alan }, everything: { id: 6, ...shown } }),
      400: badInput(
        'Name and email required',
        'A user id is an integer from 1 to 9007199254740991',
        'age must be an integer from 0 to 150',
        ...malformed,
        badCondition,
      ),
      401: response('Unauthenticated'),
      403: response('Forbidden'),
      409: answer('EmailTaken'),
      412: answer('UserConditionUnmet'),
      ...onWriting,
    },
  },
  change: {
    operationId: 'changeUser',
    summary: 'Change fields of a user',
    description: 'Only the sent fields change. Under the policy `enforced`, only for that user and for admins.',
    tags,
    security: tokenOptional,
    parameters: [...byId, parameter('IfMatch')],
    requestBody: {
      required: true,
      content: json(schema('UserChanges'), {
        'set-age': { age: 37 },
        'remove-age': { age: null },
        'new-name': { name: 'Ada King' },
      }),
    },
    responses: {
      200: user('All fields of the user after the change.', { ada: { ...ada, age: 37 } }),
      400: badInput('name must not be empty', 'age must be an integer from 0 to 150', ...malformed, badCondition),
      401: response('Unauthenticated'),
      403: response('Forbidden'),
      404: answer('UserNotFound'),
      409: answer('EmailTaken'),
      412: answer('UserConditionUnmet'),
      ...onWriting,
    },
  },
  delete: {
    operationId: 'deleteUser',
    summary: 'Delete a user',
    description:
      'Also deletes the posts and comments of the user. Orders and payments are kept as records of sales. Deleting an ' +
      'absent user succeeds. Under the policy `enforced`, only for that user and for admins.',
    tags,
    security: tokenOptional,
    parameters: [...byId, parameter('IfMatch')],
    responses: {
      204: { description: 'The user does not exist any more.', headers: answerHeaders() },
      400: failure('The request is malformed.', ['Malformed URL', 'One Host header required', badCondition]),
      401: response('Unauthenticated'),
      403: response('Forbidden'),
      412: answer('UserConditionUnmet'),
      ...onWriting,
    },
  },
} as const satisfies Readonly<Record<string, OpenApiOperation>>
