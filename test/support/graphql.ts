import assert from 'node:assert/strict'
import type { Engine } from '../../src/storage/engine.ts'
import type { Verbs } from '../../src/storage/verb.ts'
import { ask, type RawResponse, type Served } from './http.ts'

/** The options of a request. A user with a token can be passed directly: `query(app, text, ann)`. */
export interface Asked {
  readonly variables?: unknown
  readonly operationName?: unknown
  readonly extensions?: unknown
  readonly token?: string | undefined
  readonly accept?: string
}

/** `POST /graphql`. */
export function query(app: Served, text: string, asked: Asked = {}): Promise<RawResponse> {
  const { variables, operationName, extensions, token, accept } = asked
  return postText(app, JSON.stringify({ query: text, variables, operationName, extensions }), headersOf(token, accept))
}

/** Sends a body that `query` cannot produce. */
export function postText(app: Served, body: string, headers: Headers = {}): Promise<RawResponse> {
  const all = { 'content-type': 'application/json', ...headers }
  return ask(`${app.url}/graphql`, { method: 'POST', headers: all, body })
}

type Headers = Readonly<Record<string, string>>

/** `GET /graphql`, with exactly these parameters. */
export function get(app: Served, parameters: Headers, { token, accept }: Asked = {}): Promise<RawResponse> {
  return ask(`${app.url}/graphql?${new URLSearchParams(parameters)}`, { headers: headersOf(token, accept) })
}

function headersOf(token: string | undefined, accept: string | undefined): Headers {
  return { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...(accept !== undefined && { accept }) }
}

/** The data of an answer that must be successful and contain only data. */
export function dataOf<Data = Readonly<Record<string, unknown>>>(response: RawResponse): Data {
  assert.equal(response.status, 200, response.body)
  assert.match(response.headers.get('content-type') ?? '', contentType)
  const body = JSON.parse(response.body)
  assert.deepEqual(Object.keys(body), ['data'], response.body)
  return body.data
}

const contentType = /^application\/(json|graphql-response\+json); charset=utf-8$/

/** The data of an operation that must succeed. */
export async function read<Data = Readonly<Record<string, unknown>>>(
  app: Served,
  text: string,
  asked?: Asked,
): Promise<Data> {
  return dataOf<Data>(await query(app, text, asked))
}

export interface ErrorBody {
  readonly message: string
  readonly locations?: readonly { readonly line: number; readonly column: number }[]
  readonly path?: readonly string[]
  readonly extensions: Readonly<Record<string, unknown>>
}

/**
 * Checks that an answer is a refused operation: its status, no data, `errors` that all have a message and this code, and
 * a connection that stays open. Returns the first error.
 */
export function assertRefused(response: RawResponse, status: number, code: string, text?: string | RegExp): ErrorBody {
  const { headers, body } = response
  assert.equal(response.status, status, body)
  assert.match(headers.get('content-type') ?? '', contentType)
  assert.match(headers.get('x-request-id') ?? '', /^[\w.:-]{1,128}$/)
  assert.equal(headers.has('www-authenticate'), status === 401)
  assert.notEqual(headers.get('connection'), 'close')
  const parsed: { readonly errors: readonly ErrorBody[] } = JSON.parse(body)
  assert.deepEqual(Object.keys(parsed), ['errors'], body)
  for (const { message, extensions, ...more } of parsed.errors) {
    assert.ok(typeof message === 'string' && message !== '', body)
    assert.equal(extensions.code, code, body)
    for (const key of Object.keys(more)) assert.match(key, /^(locations|path)$/, body)
  }
  const [first] = parsed.errors
  if (first === undefined) return assert.fail(body)
  if (typeof text === 'string') assert.equal(first.message, text)
  else if (text !== undefined) assert.match(first.message, text)
  return first
}

/** The rows of a statement, read directly from the database of an app. */
export const rowsOf = <V extends Verbs>(engine: Engine<V>, text: string) => engine.read({ text, values: [] })

/** Joins this many texts. */
export const repeat = (count: number, text: (index: number) => string, separator = ' '): string =>
  Array.from({ length: count }, (_, index) => text(index)).join(separator)
