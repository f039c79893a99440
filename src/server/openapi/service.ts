import { version } from '../version.ts'
import type { OpenApiOperation, Part } from './document.ts'
import {
  always,
  answerHeaders,
  challengeHeader,
  failure,
  response,
  retryAfterHeader,
  tokenIgnored,
  unlimitedFailure,
} from './parts.ts'

const tags = ['Service'] as const
const requestId = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } }
const badRequest = unlimitedFailure('The request is malformed.', ['One Host header required'])

const homeExample = {
  name: 'Duet',
  version,
  links: { graphql: '/graphql', openapi: '/openapi.json', health: '/health/ready' },
}

function state(name: string): Part {
  return {
    description: `The service is ${name}.`,
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
  '/': {
    operationId: 'getHome',
    summary: 'Find out what runs here',
    description:
      'To a browser (`Accept: text/html`) this is a page, unless `EXPLORERS` is off. It does not count for the rate limit. `/api` and ' +
      '`/api/` answer with the same JSON.',
    tags,
    security: tokenIgnored,
    responses: {
      200: {
        description: 'The name and version of the service, and the paths that a client can start from.',
        headers: requestId,
        content: {
          'application/json': { schema: home(), example: homeExample },
          'text/html': { schema: { type: 'string' }, example: '<!doctype html>…' },
        },
      },
      400: badRequest,
      429: response('TooManyExempt'),
      500: response('Fault'),
      503: unlimitedFailure(
        'The service is under maintenance.',
        ['Service under maintenance. Try again later.'],
        retryAfterHeader,
      ),
      default: response('Other'),
    },
  },
  '/health/live': {
    operationId: 'getLiveness',
    summary: 'Check that the process is alive',
    description: 'Also works under maintenance. It does not count for the rate limit, nor use the database.',
    tags,
    security: tokenIgnored,
    responses: {
      200: state('live'),
      400: badRequest,
      429: response('TooManyExempt'),
      500: response('Fault'),
      default: response('Other'),
    },
  },
  '/health/ready': {
    operationId: 'getReadiness',
    summary: 'Check that the service can take requests',
    description: 'Also works under maintenance, and does not count for the rate limit.',
    tags,
    security: tokenIgnored,
    responses: {
      200: state('ready'),
      400: badRequest,
      429: response('TooManyExempt'),
      500: response('Fault'),
      503: response('NotReady'),
      default: response('Other'),
    },
  },
  '/metrics': {
    operationId: 'getMetrics',
    summary: 'Metrics for Prometheus',
    description:
      'If `METRICS_TOKEN` is set, this needs that token. If not, it is off in production and outside loopback. ' +
      'It does not count for the rate limit.',
    tags,
    security: [{}, { metricsToken: [] }],
    responses: {
      200: {
        description: 'All metrics, in the text format of Prometheus.',
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
      404: failure('Metrics are off, so this path is unknown.', ['Not found']),
      429: response('TooManyExempt'),
      500: response('Fault'),
      503: response('Unavailable'),
      default: response('Other'),
    },
  },
  '/.well-known/jwks.json': {
    operationId: 'getPublicKeys',
    summary: 'Read the public keys of tokens',
    description: 'A JSON Web Key Set (RFC 7517). The `kid` of a token tells which key signed it.',
    tags,
    security: tokenIgnored,
    responses: {
      200: {
        description: 'The key set. The first key signs new tokens; all keys verify.',
        headers: answerHeaders({
          'Cache-Control': {
            description: 'May be cached for five minutes.',
            schema: { type: 'string' },
            example: 'public, max-age=300',
          },
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

function home(): Part {
  const link = (description: string) => ({ type: 'string', description })
  return {
    type: 'object',
    required: ['name', 'version', 'links'],
    properties: {
      name: { const: 'Duet' },
      version: { type: 'string' },
      links: {
        type: 'object',
        description: 'Only what this service has under its settings.',
        required: ['graphql', 'openapi', 'health'],
        properties: {
          console: link('A page to use the service.'),
          graphql: link('The GraphQL endpoint; in a browser, GraphiQL.'),
          docs: link('The documentation.'),
          openapi: link('This document.'),
          health: link('Whether the service can take requests.'),
          client: link('A typed client, as a JavaScript module.'),
        },
      },
    },
  }
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
