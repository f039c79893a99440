import type { OpenApiOperation, Part } from './openapi.ts'
import {
  always,
  answerHeaders,
  challengeHeader,
  failure,
  response,
  tokenIgnored,
  unlimitedFailure,
} from './openapi-parts.ts'

const tags = ['Service'] as const
const requestId = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } }
const badRequest = unlimitedFailure('The request is malformed.', ['One Host header required'])

function state(name: string): Part {
  return {
    description: 'It is.',
    headers: requestId,
    content: {
      'application/json': {
        schema: { type: 'object', required: ['status'], properties: { status: { const: name } } },
        example: { status: name },
      },
    },
  }
}

/** The routes of the server itself, by path. All of them are GET routes. */
export const serviceOperations: Readonly<Record<string, OpenApiOperation>> = {
  '/health/live': {
    operationId: 'getLiveness',
    summary: 'Is the process alive?',
    description: 'Answers under maintenance too, is never limited, and asks nothing of the database.',
    tags,
    security: tokenIgnored,
    responses: { 200: state('live'), 400: badRequest, 500: response('Fault'), default: response('Other') },
  },
  '/health/ready': {
    operationId: 'getReadiness',
    summary: 'Should it get traffic?',
    description: 'Answers under maintenance too, and is never limited.',
    tags,
    security: tokenIgnored,
    responses: {
      200: state('ready'),
      400: badRequest,
      500: response('Fault'),
      503: response('NotReady'),
      default: response('Other'),
    },
  },
  '/metrics': {
    operationId: 'getMetrics',
    summary: 'Measurements for Prometheus',
    description:
      'Off in production or beyond loopback unless `METRICS_TOKEN` is set; asks for that token where it is. Never limited.',
    tags,
    security: [{}, { metricsToken: [] }],
    responses: {
      200: {
        description: 'All measurements, in the text format of Prometheus.',
        headers: requestId,
        content: {
          'text/plain': {
            schema: { type: 'string' },
            example:
              '# HELP duet_http_requests_in_flight Requests being answered now\n' +
              '# TYPE duet_http_requests_in_flight gauge\nduet_http_requests_in_flight 1\n',
          },
        },
      },
      400: badRequest,
      401: unlimitedFailure('The token is missing or wrong.', ['Metrics need their token'], challengeHeader),
      404: failure('Metrics are off: the path is like any unknown one.', ['Not found']),
      500: response('Fault'),
      503: response('Unavailable'),
      default: response('Other'),
    },
  },
  '/.well-known/jwks.json': {
    operationId: 'getPublicKeys',
    summary: 'The keys that tokens are signed with',
    description: 'The public halves, as a JSON Web Key Set (RFC 7517). Tokens name theirs by `kid`.',
    tags,
    security: tokenIgnored,
    responses: {
      200: {
        description: 'The key set. The first key signs, all of them verify.',
        headers: answerHeaders({
          'Cache-Control': { description: 'Five minutes.', schema: { type: 'string' }, example: 'public, max-age=300' },
        }),
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: ['keys'],
              properties: { keys: { type: 'array', minItems: 1, items: key() } },
            },
            example: {
              keys: [
                {
                  kty: 'OKP',
                  crv: 'Ed25519',
                  x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
                  kid: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
                  alg: 'EdDSA',
                  use: 'sig',
                },
              ],
            },
          },
        },
      },
      400: response('BadRequest'),
      ...always,
    },
  },
}

function key(): Part {
  return {
    type: 'object',
    required: ['kty', 'crv', 'x', 'kid', 'alg', 'use'],
    properties: {
      kty: { const: 'OKP' },
      crv: { const: 'Ed25519' },
      x: { type: 'string', description: 'The public key, in base64url.' },
      kid: { type: 'string' },
      alg: { const: 'EdDSA' },
      use: { const: 'sig' },
    },
  }
}
