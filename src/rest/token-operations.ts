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
    'Ignores `Authorization`. Attempts have limits of their own, per client and per client and e-mail, which hold for the ' +
    'right password too.',
  tags: ['Tokens'],
  security: tokenIgnored,
  requestBody: { required: true, content: json(schema('Credentials'), { demo: demoLogin }) },
  responses: {
    200: {
      description: 'A token.',
      headers: answerHeaders({
        'Cache-Control': {
          description: 'A token is for one reader.',
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
