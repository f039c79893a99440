import assert from 'node:assert/strict'
import { ask, type RawResponse } from './http.ts'

/** Whatever serves: an app, or anything else with an address. */
interface Served {
  readonly url: string
}

export interface UserBody {
  readonly id: number
  readonly name: string
  readonly email: string
  readonly age?: number
  readonly avatar?: string
}

/** One request, written as it would be said: `send(app, 'PUT /users/1', { name, email }, token)`. */
export function send(app: Served, line: string, body?: unknown, token?: string): Promise<RawResponse> {
  return sendText(app, line, body === undefined ? undefined : JSON.stringify(body), token)
}

/** For bodies that `JSON.stringify` would never write. */
export function sendText(app: Served, line: string, text?: string, token?: string): Promise<RawResponse> {
  const [method = '', path = ''] = line.split(' ')
  const headers = {
    ...(text !== undefined && { 'content-type': 'application/json' }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  }
  return ask(app.url + path, { method, headers, ...(text !== undefined && { body: text }) })
}

/** The body of an answer that must have this status. */
export function bodyOf<Body = UserBody>(response: RawResponse, status = 200): Body {
  assert.equal(response.status, status, response.body)
  assert.match(response.headers.get('content-type') ?? '', /^application\/json(; charset=utf-8)?$/)
  return JSON.parse(response.body) as Body
}

/** A new user, of whom only what matters to the test need be said. */
export async function createUser(app: Served, values: object = {}): Promise<UserBody> {
  return bodyOf(await send(app, 'POST /users', { ...somebody(), ...values }), 201)
}

let people = 0

/** A name and an e-mail that no other user of this process has. */
export function somebody(): { name: string; email: string } {
  const number = ++people
  return { name: `Person ${number}`, email: `person-${number}@example.com` }
}

export async function logIn(app: Served, email: string, password: string): Promise<string> {
  return bodyOf<{ token: string }>(await send(app, 'POST /tokens', { email, password })).token
}
