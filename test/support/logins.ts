import assert from 'node:assert/strict'
import { type Asked, ask, postJson, type RawResponse } from './http.ts'

export const password = 'correct horse battery'

/** Creates a user with a password, and returns the id. */
export async function register(url: string, email = 'ann@example.com'): Promise<number> {
  const response = await postJson(`${url}/users`, JSON.stringify({ name: 'Ann', email, password }))
  assert.equal(response.status, 201, response.body)
  return JSON.parse(response.body).id
}

export async function tryLogin(url: string, email = 'ann@example.com', secret = password): Promise<RawResponse> {
  return await postJson(`${url}/tokens`, JSON.stringify({ email, password: secret }))
}

export async function tokenOf(url: string, email?: string, secret?: string): Promise<string> {
  const response = await tryLogin(url, email, secret)
  assert.equal(response.status, 200, response.body)
  return JSON.parse(response.body).token
}

export async function askAs(token: string, url: string, asked: Asked = {}): Promise<RawResponse> {
  return await ask(url, { ...asked, headers: { ...asked.headers, authorization: `Bearer ${token}` } })
}

/** Whether the service still accepts the token. */
export async function isValid(token: string, url: string): Promise<boolean> {
  const { status, body } = await askAs(token, `${url}/users/me`)
  assert.ok(status === 200 || status === 401, body)
  return status === 200
}
