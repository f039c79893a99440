import { demoLogin } from '../core/demo.ts'
import type { OpenApiOperation } from '../server/openapi.ts'
import { always, answerHeaders, challengeHeader, failure, tokenIgnored, withBody } from '../server/openapi-parts.ts'
import { json, schema } from './schemas.ts'

const token = 'eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJkdWV0Iiwic3ViIjoiMSJ9.c2lnbmF0dXJl'

/** The OpenAPI operation for logging in. */
export const logIn: OpenApiOperation = {
  operationId: 'createToken',
  summary: 'Log in',
  description:
    'Ignores `Authorization`. Login attempts have separate limits: for each client, and for each client with one e-mail. ' +
    'They apply even if the password is right.',
  tags: ['Tokens'],
  security: tokenIgnored,
  requestBody: { required: true, content: json(schema('Credentials'), { demo: demoLogin }) },
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
    401: failure('There is no user with this e-mail and password.', ['Invalid email or password'], challengeHeader),
    ...withBody,
    ...always,
  },
}
