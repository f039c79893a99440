import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { anyMutation, anyQuery } from '../graphql/support/operations.ts'
import { type Operation, operations, type Parameter } from '../http/openapi.ts'
import type { Conversation, Header, HttpRequest, Step } from './cases.ts'
import type { Random } from './values.ts'
import type { World } from './world.ts'

/** Creates one valid request. */
type Template = (random: Random, world: World) => HttpRequest

/** A valid request of any route: those of the OpenAPI document, GraphQL by POST and GET, and pages. */
export function validRequest(random: Random, world: World): HttpRequest {
  const request = random.pick(random.chance(0.35) ? others : documented)(random, world)
  // Hashing a password takes a thousand times as long as any other work, so most requests have none.
  return request.body?.includes('"password"') && random.chance(0.9) ? validRequest(random, world) : request
}

const documented = [...operations].map(([name, operation]) => templateOf(name, operation))

function templateOf(name: string, { parameters, bodies, isBelowApi }: Operation): Template {
  const [method = '', path = ''] = name.split(' ')
  return (random, world) => {
    const given = parameters.filter(parameter => parameter.required || random.chance(0.4))
    const valuesIn = (place: string) =>
      given.filter(parameter => parameter.in === place).map(each => [each.name, String(exampleOf(each))] as const)
    const query = new URLSearchParams(Object.fromEntries(valuesIn('query'))).toString()
    const filled = path.replaceAll(/\{\w+\}/g, () => String(world.idFor(path, random)))
    const target = `${isBelowApi && random.chance(0.2) ? '/api' : ''}${filled}${query === '' ? '' : `?${query}`}`
    // The examples log in as a user that may have been deleted.
    const examples = path === '/tokens' && bodies.length > 0 ? [...bodies, world.login] : bodies
    const body = examples.length === 0 ? undefined : random.pick(examples)
    const keys = valuesIn('header').map(([header, value]): Header => {
      return [header, header === 'Idempotency-Key' && random.chance(0.7) ? `key-${random.below(1e6)}` : value]
    })
    const token = name === 'DELETE /tokens' ? world.spareToken : world.token
    return request(name, method, target, [...usualHeaders(random, token), ...keys], body)
  }
}

const exampleOf = ({ example, schema }: Parameter): unknown =>
  example ?? schema.default ?? schema.enum?.[0] ?? schema.minimum ?? '1'.repeat(schema.minLength ?? 1)

function request(
  name: string,
  method: string,
  target: string,
  headers: readonly Header[],
  content?: unknown,
): HttpRequest {
  const body = content === undefined ? undefined : Buffer.from(JSON.stringify(content))
  const type: readonly Header[] = body === undefined ? [] : [['Content-Type', 'application/json']]
  const all = [['Host', 'localhost'] as const, ...type, ...headers]
  return { kind: 'request', name, method, target, version: 'HTTP/1.1', headers: all, body }
}

function usualHeaders(random: Random, token: string): readonly Header[] {
  return [
    ...(random.chance(0.6) ? [['Authorization', `Bearer ${token}`] as const] : []),
    ...(random.chance(0.2) ? [['Accept', 'application/json'] as const] : []),
    ...(random.chance(0.1) ? [['Origin', 'http://localhost:5173'] as const] : []),
    ...(random.chance(0.05) ? [['Traceparent', `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`] as const] : []),
    ...(random.chance(0.05) ? [['If-None-Match', '"x"'] as const] : []),
  ]
}

function graphql(kind: OperationKind, method: 'POST' | 'GET'): Template {
  return (random, world) => {
    const operation = sometimesByHash(operationOf(kind, random, world), random)
    const headers = usualHeaders(random, world.token)
    const name = `${kind} by ${method} /graphql`
    if (method === 'POST') return request(name, method, '/graphql', headers, operation)
    const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value ?? {}))
    const parameters = Object.entries(operation).map(([member, value]) => [member, text(value)])
    return request(name, method, `/graphql?${new URLSearchParams(Object.fromEntries(parameters))}`, headers)
  }
}

type OperationKind = 'query' | 'mutation' | 'subscription'

/** A valid operation, as the members of a request. */
function operationOf(kind: OperationKind, random: Random, world: World): { query: string; variables: object } {
  const posts = Array.from({ length: 3 }, () => ({ id: world.idFor('posts', random) }))
  if (kind === 'subscription') return { query: random.pick(subscriptions), variables: { id: posts[0]?.id } }
  const rows = { users: [], posts, comments: [] }
  const any = kind === 'query' ? anyQuery(rows) : anyMutation(rows, [])
  const [made] = fc.sample(any, { numRuns: 1, seed: random.below(2 ** 31) })
  return { query: made?.text ?? '', variables: made?.variables[0] ?? {} }
}

const subscriptions = [
  'subscription { a: postAdded { id author { name posts(limit: 2) { title } } } }',
  'subscription { postUpdated { title ... on Post { comments { text } } } }',
  'subscription { postDeleted }',
  'subscription ($id: ID!) { commentAdded(postId: $id) { text author { id } } }',
  'subscription ($id: ID!) { commentUpdated(postId: $id) { text } }',
  'subscription ($id: ID!) { commentDeleted(postId: $id) }',
]

/** Sends some operations with the hash of their text, or with the hash alone. */
function sometimesByHash(operation: { readonly query: string }, random: Random): object {
  if (random.chance(0.8)) return operation
  const sha256Hash = createHash('sha256').update(operation.query).digest('hex')
  const named = { ...operation, extensions: { persistedQuery: { version: 1, sha256Hash } }, documentId: sha256Hash }
  return random.chance(0.5) ? named : { ...named, query: '' }
}

const pages = ['/', '/docs', '/openapi.json', '/graphql', '/graphiql/start.js', '/console', '/nowhere']
const anyPage: Template = (random, world) => {
  const target = random.pick(pages)
  return request(`GET ${target}`, 'GET', target, [...usualHeaders(random, world.token), ['Accept', 'text/html']])
}

const others: readonly Template[] = [
  ...Array.from({ length: 4 }, () => graphql('query', 'POST')),
  ...Array.from({ length: 3 }, () => graphql('mutation', 'POST')),
  ...Array.from({ length: 2 }, () => graphql('query', 'GET')),
  graphql('subscription', 'POST'),
  graphql('mutation', 'GET'),
  anyPage,
]

/** The messages of a well-behaved client on a socket. Together they include every type of message. */
export function validConversation(random: Random, world: World): Conversation {
  const says: { readonly type: string; readonly id?: string; readonly payload?: unknown }[] = []
  const authorization = { Authorization: `Bearer ${world.token}` }
  const isInHeader = random.chance(0.2)
  const payload = !isInHeader && random.chance(0.6) ? authorization : random.pick([undefined, {}, { client: 'fuzz' }])
  if (random.chance(0.1)) says.push({ type: 'ping' })
  says.push({ type: 'connection_init', payload })
  const ids: string[] = []
  for (let left = random.between(1, 4); left > 0; left--) {
    if (random.chance(0.25)) says.push({ type: 'ping', payload: { sent: random.below(1000) } })
    if (random.chance(0.1)) says.push({ type: 'pong', payload: {} })
    if (ids.length > 0 && random.chance(0.2)) says.push({ type: 'complete', id: random.pick(ids) })
    const id = `operation-${ids.length}`
    ids.push(id)
    says.push({ type: 'subscribe', id, payload: operation(random, world) })
  }
  if (random.chance(0.4)) says.push({ type: 'complete', id: random.pick(ids) })
  return {
    kind: 'conversation',
    name: 'a conversation',
    headers: isInHeader ? Object.entries(authorization) : [],
    steps: says.map((said): Step => ({ text: JSON.stringify(said), isAcknowledged: said.type === 'connection_init' })),
  }
}

function operation(random: Random, world: World): object {
  const kind = random.pick(['query', 'mutation', 'subscription', 'subscription'] as const)
  const made = sometimesByHash(operationOf(kind, random, world), random)
  return random.chance(0.1) ? { ...made, extensions: random.pick([{}, { positions: true }]) } : made
}
