/** The OpenAPI components that all operations share: the error schema, the headers, and the security schemes. */
const schemas = {
  Error: {
    type: 'object',
    description: 'The body of every failure.',
    required: ['error'],
    properties: { error: { type: 'string', minLength: 1, description: 'A description of the error for people.' } },
  },
}

const headers = {
  RequestId: {
    description: 'The `X-Request-Id` of the request if it is valid, otherwise a new one. It is in the logs.',
    schema: { type: 'string', pattern: '^[\\w.:-]{1,128}$' },
    example: '5f0c9d3e-2c0b-4a53-9a2e-0d9b1a6f7c11',
  },
  RateLimitPolicy: {
    description:
      'The number of requests per window (`q`) and the window in seconds (`w`). Only on paths with a rate limit.',
    schema: { type: 'string' },
    example: '"default";q=100;w=60',
  },
  RateLimit: {
    description:
      'The remaining requests (`r`) and the seconds until the window ends (`t`). Only on paths with a rate limit.',
    schema: { type: 'string' },
    example: '"default";r=99;t=60',
  },
  RetryAfter: {
    description: 'How many seconds to wait before a retry.',
    schema: { type: 'string', pattern: '^\\d+$' },
    example: '60',
  },
  Challenge: {
    description: 'RFC 6750. Contains an error if the request had a token.',
    schema: { type: 'string', pattern: '^Bearer' },
    example: 'Bearer error="invalid_token", error_description="Invalid or expired token"',
  },
}

const header = (name: keyof typeof headers) => ({ $ref: `#/components/headers/${name}` })

const onEveryAnswer = { 'X-Request-Id': header('RequestId') }

/** The headers of a response: the common ones and its own. */
export function answerHeaders(own: object = {}): object {
  return {
    ...own,
    ...onEveryAnswer,
    'RateLimit-Policy': header('RateLimitPolicy'),
    RateLimit: header('RateLimit'),
  }
}

/** An error response, with each possible message as an example. */
export function failure(description: string, sentences: readonly string[], own: object = {}): object {
  return failureWith(description, sentences, answerHeaders(own))
}

/** An error response of a route without a rate limit. */
export function unlimitedFailure(description: string, sentences: readonly string[], own: object = {}): object {
  return failureWith(description, sentences, { ...own, ...onEveryAnswer })
}

function failureWith(description: string, sentences: readonly string[], headers: object): object {
  const examples = Object.fromEntries(sentences.map(error => [nameOf(error), { value: { error } }]))
  const schema = { $ref: '#/components/schemas/Error' }
  return { description, headers, content: { 'application/json': { schema, examples } } }
}

function nameOf(sentence: string): string {
  return sentence
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/-$/, '')
}

export const retryAfterHeader = { 'Retry-After': header('RetryAfter') }
export const challengeHeader = { 'WWW-Authenticate': header('Challenge') }
export const busy = 'Service temporarily unavailable. Try again later.'

const responses = {
  Unauthenticated: failure(
    'A required token is missing, or the token is invalid or expired.',
    ['Authentication required', 'Invalid or expired token'],
    challengeHeader,
  ),
  Forbidden: failure('The token is valid, but its user may not do this.', ['Not permitted']),
  BodyTooLarge: failure('The body is larger than `BODY_LIMIT_BYTES`, by default one mebibyte.', [
    'Request body is too large',
  ]),
  NotJson: failure('The body has another content type.', ['Content-Type must be application/json']),
  TooManyRequests: failure('The rate limit is exceeded.', ['Too many requests. Try again later.'], retryAfterHeader),
  TooManyExempt: unlimitedFailure(
    'A client may send 1,000 requests a minute to paths without a rate limit and with `OPTIONS`, together.',
    ['Too many requests. Try again later.'],
    retryAfterHeader,
  ),
  Fault: failure('An internal error of the service.', ['Internal server error']),
  Unavailable: failure(
    'The service is under maintenance, or a part that it needs, such as the database, does not respond.',
    ['Service under maintenance. Try again later.', busy],
    retryAfterHeader,
  ),
  NotReady: unlimitedFailure(
    'The database does not respond, or the service is shutting down.',
    [busy],
    retryAfterHeader,
  ),
  BadRequest: failure('The request is malformed.', ['Malformed URL', 'One Host header required']),
  Other: unlimitedFailure(
    'Errors of HTTP itself: the request is not valid HTTP or did not arrive in time (408, 417, 431, 505).',
    ['Expectation cannot be met'],
  ),
}

export function response(name: keyof typeof responses): object {
  return { $ref: `#/components/responses/${name}` }
}

/** The responses that every operation of the API may give. */
export const always = {
  429: response('TooManyRequests'),
  500: response('Fault'),
  503: response('Unavailable'),
  default: response('Other'),
}

/** The responses that every operation with a body may give, in addition to 400. */
export const withBody = { 413: response('BodyTooLarge'), 415: response('NotJson') }

const securitySchemes = {
  token: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'A token from `POST /tokens`.' },
  metricsToken: { type: 'http', scheme: 'bearer', description: 'The value of `METRICS_TOKEN`, if it is set.' },
}

export const commonComponents = { schemas, headers, responses, securitySchemes }

/** The values of `security` in an operation. */
export const tokenNeeded = [{ token: [] }]
export const tokenOptional = [{}, { token: [] }]
export const tokenIgnored: [] = []
