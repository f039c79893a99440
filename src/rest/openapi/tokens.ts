import { demoLogin } from '../../core/demo.ts'
import type { OpenApiOperation } from '../../server/openapi/document.ts'
import {
  always,
  answerHeaders,
  challengeHeader,
  failure,
  response,
  tokenNeeded,
  tokenOptional,
  withBody,
} from '../../server/openapi/parts.ts'
import { json, schema } from './schemas.ts'

const token = 'eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJkdWV0Iiwic3ViIjoiMSJ9.c2lnbmF0dXJl'

const tags = ['Tokens'] as const

/** The OpenAPI operations on tokens. */
export const tokenOperations = {
  create: {
    operationId: 'createToken',
    summary: 'Log in, or renew a token',
    description:
      'With credentials in the body: logs in, and ignores `Authorization`. Login attempts have separate limits: for each ' +
      'client, and for each client with one e-mail. They apply even if the password is right. Without a body, or with an ' +
      'empty object: gives a new token for the valid one in `Authorization`. A token can be renewed until ' +
      '`SESSION_TTL_SECONDS` after the login, by default 30 days, and no token of that login lives longer than that. The claim ' +
      '`auth_time` is the moment of the login.',
    tags,
    security: tokenOptional,
    requestBody: { required: false, content: json(schema('Credentials'), { demo: demoLogin }) },
    responses: {
      200: {
        description: 'A token.',
        headers: answerHeaders({
          'Cache-Control': {
            description: 'A token must not be cached.',
            schema: { const: 'no-store' },
            example: 'no-store',
          },
        }),
        content: json(schema('Token'), { token: { token } }),
      },
      400: failure('The request is malformed.', ['Email and password required', 'Request body is not valid JSON']),
      401: failure(
        'There is no user with this e-mail and password, or the token cannot be renewed.',
        ['Invalid email or password', 'Invalid or expired token', 'The session has ended. Log in again.'],
        challengeHeader,
      ),
      ...withBody,
      ...always,
    },
  },
  delete: {
    operationId: 'deleteTokens',
    summary: 'Log out everywhere',
    description:
      'All tokens of the user become invalid, not only this one, and the open WebSockets with them are closed.',
    tags,
    security: tokenNeeded,
    responses: {
      204: { description: 'No token of the user is valid any more.', headers: answerHeaders() },
      400: response('BadRequest'),
      401: response('Unauthenticated'),
      ...withBody,
      ...always,
    },
  },
} as const satisfies Readonly<Record<string, OpenApiOperation>>
