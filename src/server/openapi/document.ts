import type { FastifyInstance } from 'fastify'
import { version } from '../version.ts'
import { commonComponents } from './parts.ts'

/** Any object of an OpenAPI document that our code only passes on. */
export type Part = Readonly<Record<string, unknown>>

/** An OpenAPI 3.1 operation. It is only documentation: the core alone decides which input is accepted. */
export interface OpenApiOperation extends Part {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly [keyof typeof tags]
  readonly security: readonly Part[]
  readonly responses: Part
}

/** The components that operations refer to, by kind and name. */
export type Components = Readonly<Partial<Record<'schemas' | 'responses' | 'headers' | 'parameters', Part>>>

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: OpenApiOperation
  }
}

const tags = {
  Users: 'User accounts.',
  Orders: 'Orders of users: create, read, pay, cancel and track them.',
  Payments: 'Payments, made once per idempotency key.',
  Tokens: 'Login, renewal of tokens, and logout.',
  Service: 'What runs here, health, metrics and the public keys of tokens. Served at the root only.',
} as const

/** These routes are not served below `/api`. A gateway may send them to another place than the API. */
const atTheRoot = { servers: [{ url: '/', description: 'The root only' }] }

/**
 * Collects the operations of all routes that are registered from now on: those in the route's config, and those in
 * `known`, by path. Routes below `/api` duplicate those at the root, so the document lists `/api` as a server instead.
 */
export function collectOperations(server: FastifyInstance, known: Readonly<Record<string, OpenApiOperation>>) {
  const paths: Record<string, Record<string, unknown>> = {}
  server.addHook('onRoute', ({ url, method, config }) => {
    const operation = config?.operation ?? known[url]
    // Every GET route has a HEAD route, which needs no documentation. In the routes that refuse unsupported methods,
    // `method` is an array.
    if (typeof method !== 'string' || method === 'HEAD') return
    if (operation === undefined || url.startsWith('/api/')) return
    const path = url.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] ??= operation.tags[0] === 'Service' ? { ...atTheRoot } : {}
    paths[path][method.toLowerCase()] = operation
  })
  return (components: Components): object => ({
    openapi: '3.1.1',
    info,
    servers: [
      { url: '/', description: 'The root' },
      { url: '/api', description: 'The same interface below a prefix' },
    ],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      ...commonComponents,
      schemas: { ...components.schemas, ...commonComponents.schemas },
      responses: { ...components.responses, ...commonComponents.responses },
      headers: { ...components.headers, ...commonComponents.headers },
      parameters: { ...components.parameters },
    },
  })
}

const info = {
  title: 'Duet',
  version,
  summary: 'The resource-style HTTP interface of a content-and-account service.',
  description: `Bodies are JSON in UTF-8. Every failure has its real status and the body \`{"error": "<text>"}\`.

Unknown fields of a body are ignored. Known fields of a wrong type are refused, never converted. An id that no resource
can have (\`abc\`, \`0\`, \`01\`, \`1.5\`) is treated like the id of an absent resource.

A token is optional where the access policy allows every caller, but an invalid or expired token is refused everywhere.
Under the policy \`open\` every caller may use every operation described here, but only the user and admins may change
an existing password. Under \`enforced\` users may read and change only their own data, and admins all data.

Responses must not be cached (\`Cache-Control: no-store\`) unless their headers say otherwise. One user, order or payment
comes with an \`ETag\`: a client may keep it and ask with \`If-None-Match\` whether it is still current. A write with
\`If-Match\` is done only if nobody has changed the resource since it was read.

\`HEAD\` works where \`GET\` does. Another method on a known path gets 405 with \`Allow\`.`,
  license: { name: 'MIT', identifier: 'MIT' },
} as const

/** `GET /openapi.json`. The text is made once, at the first request. */
export function serveDocument(server: FastifyInstance, document: object): void {
  let text: string | undefined
  server.get('/openapi.json', (_request, reply) => {
    reply.header('cache-control', 'no-cache').type('application/json; charset=utf-8')
    text ??= JSON.stringify(document)
    return reply.send(text)
  })
}
