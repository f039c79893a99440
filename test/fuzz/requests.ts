import { readFileSync } from 'node:fs'
import { openApiFile } from '../support/write-openapi.ts'
import type { Header, HttpRequest } from './cases.ts'
import { type OperationKind, operationOf } from './operations.ts'
import type { Random } from './random.ts'
import type { World } from './world.ts'

/** Makes one valid request. */
type Template = (random: Random, world: World) => HttpRequest

/** A valid request of any route: those of the OpenAPI document, GraphQL by POST and GET, pages, and the opening of a socket. */
export function validRequest(random: Random, world: World): HttpRequest {
  const request = random.pick(random.chance(0.35) ? others : documented)(random, world)
  // Hashing takes a thousand times as long as anything else: most of the time goes to other requests.
  return request.body?.includes('"password"') && random.chance(0.9) ? validRequest(random, world) : request
}

type Named<Value> = Readonly<Record<string, Value>>

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly example?: unknown
  readonly schema: { readonly default?: unknown; readonly minimum?: number; readonly enum?: readonly unknown[] }
}

interface Media {
  readonly example?: unknown
  readonly examples?: Named<{ readonly value: unknown }>
}

interface Operation {
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[]
  readonly requestBody?: { readonly content: Named<Media> }
}

interface Document {
  readonly paths: Named<Named<Operation> & { readonly servers?: unknown }>
  readonly components: { readonly parameters: Named<Parameter> }
}

const { paths, components }: Document = JSON.parse(readFileSync(openApiFile, 'utf8'))

const documented: readonly Template[] = Object.entries(paths).flatMap(([path, { servers, ...methods }]) =>
  Object.entries(methods as Named<Operation>).map(([method, operation]) => {
    return templateOf(method.toUpperCase(), path, operation, servers === undefined)
  }),
)

export const documentedNames: readonly string[] = Object.entries(paths).flatMap(([path, { servers, ...methods }]) =>
  Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`),
)

function templateOf(method: string, path: string, operation: Operation, isBelowApi: boolean): Template {
  const parameters = (operation.parameters ?? []).map(resolved)
  const bodies = Object.values(operation.requestBody?.content ?? {}).flatMap(examplesOf)
  return (random, world) => {
    const given = parameters.filter(parameter => parameter.required || random.chance(0.4))
    const valuesIn = (place: string) =>
      given.filter(parameter => parameter.in === place).map(each => [each.name, String(exampleOf(each))] as const)
    const query = new URLSearchParams(Object.fromEntries(valuesIn('query'))).toString()
    const filled = path.replaceAll(/\{\w+\}/g, () => String(world.idFor(path, random)))
    const body = bodies.length === 0 ? undefined : random.pick(bodies)
    const keys = valuesIn('header').map(([name, value]): Header => {
      return [name, name === 'Idempotency-Key' && random.chance(0.7) ? `key-${random.below(1e6)}` : value]
    })
    const target = `${isBelowApi && random.chance(0.2) ? '/api' : ''}${filled}${query === '' ? '' : `?${query}`}`
    return request(`${method} ${path}`, method, target, [...usualHeaders(random, world), ...keys], body)
  }
}

function resolved(parameter: Parameter | { readonly $ref: string }): Parameter {
  if (!('$ref' in parameter)) return parameter
  const known = components.parameters[parameter.$ref.replace(/.*\//, '')]
  if (known === undefined) throw new Error(`The document has no ${parameter.$ref}`)
  return known
}

function examplesOf({ example, examples = {} }: Media): readonly unknown[] {
  const several = Object.values(examples).map(({ value }) => value)
  return example === undefined ? several : [example, ...several]
}

function exampleOf({ example, schema }: Parameter): unknown {
  return example ?? schema.default ?? schema.enum?.[0] ?? schema.minimum ?? 1
}

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
  return { kind: 'request', name, method, target, version: 'HTTP/1.1', headers: all, body, framing: 'length' }
}

function usualHeaders(random: Random, { token }: World): readonly Header[] {
  return [
    ...(random.chance(0.6) ? [['Authorization', `Bearer ${token}`] as const] : []),
    ...(random.chance(0.2) ? [['Accept', 'application/json'] as const] : []),
    ...(random.chance(0.1) ? [['Origin', 'https://app.example.com'] as const] : []),
    ...(random.chance(0.05) ? [['Traceparent', `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`] as const] : []),
    ...(random.chance(0.05) ? [['If-None-Match', '"x"'] as const] : []),
  ]
}

function graphql(kind: OperationKind, method: 'POST' | 'GET'): Template {
  return (random, world) => {
    const operation = operationOf(kind, random, () => world.idFor('posts', random))
    const headers = usualHeaders(random, world)
    const name = `${kind} by ${method} /graphql`
    if (method === 'POST') return request(name, method, '/graphql', headers, operation)
    const parameters = Object.entries({ ...operation, variables: JSON.stringify(operation.variables) })
    return request(name, method, `/graphql?${new URLSearchParams(parameters)}`, headers)
  }
}

function page(target: string): Template {
  return (random, world) => {
    const headers = [...usualHeaders(random, world), ['Accept', 'text/html'] as const]
    return request(`GET ${target}`, 'GET', target, headers)
  }
}

const preflight: Template = random => {
  const target = random.pick(Object.keys(paths)).replaceAll(/\{\w+\}/g, '1')
  const headers: readonly Header[] = [
    ['Origin', 'https://app.example.com'],
    ['Access-Control-Request-Method', 'PUT'],
    ['Access-Control-Request-Headers', 'authorization, content-type'],
  ]
  return request('OPTIONS', 'OPTIONS', target, headers)
}

const opening: Template = (random, world) => {
  const headers: readonly Header[] = [
    ['Connection', 'Upgrade'],
    ['Upgrade', 'websocket'],
    ['Sec-WebSocket-Version', '13'],
    ['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
    ['Sec-WebSocket-Protocol', 'graphql-transport-ws'],
  ]
  return request('the opening of a socket', 'GET', '/graphql', [...headers, ...usualHeaders(random, world)])
}

const pages = ['/', '/docs', '/openapi.json', '/graphql', '/console', '/nowhere'].map(page)
const anyPage: Template = (random, world) => random.pick(pages)(random, world)

const others: readonly Template[] = [
  ...Array.from({ length: 4 }, () => graphql('query', 'POST')),
  ...Array.from({ length: 3 }, () => graphql('mutation', 'POST')),
  ...Array.from({ length: 2 }, () => graphql('query', 'GET')),
  graphql('subscription', 'POST'),
  graphql('mutation', 'GET'),
  anyPage,
  preflight,
  opening,
  opening,
]
