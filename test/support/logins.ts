import assert from 'node:assert/strict'
import { startTestApp } from './app.ts'
import { TestClock } from './clock.ts'
import { type Asked, ask, postJson, type RawResponse } from './http.ts'
import { tokenKeys } from './keys.ts'
import { createUser, logIn } from './rest.ts'

export const password = 'correct horse battery'

/** Creates a user with a password, and returns the id. */
export const register = async (url: string, email = 'ann@example.com'): Promise<number> =>
  (await createUser({ url }, { email, password })).id

export const tryLogin = async (url: string, email = 'ann@example.com', secret = password): Promise<RawResponse> =>
  await postJson(`${url}/tokens`, JSON.stringify({ email, password: secret }))

export const tokenOf = (url: string, email = 'ann@example.com', secret = password) => logIn({ url }, email, secret)

export const askAs = async (token: string, url: string, asked: Asked = {}): Promise<RawResponse> =>
  await ask(url, { ...asked, headers: { ...asked.headers, authorization: `Bearer ${token}` } })

/** Whether the service still accepts the token. */
export async function isValid(token: string, url: string): Promise<boolean> {
  const { status, body } = await askAs(token, `${url}/users/me`)
  assert.ok(status === 200 || status === 401, body)
  return status === 200
}

/** An app whose keys the test knows, with a clock and one logged-in user. */
export async function startWithUser(env: Readonly<Record<string, string>> = {}) {
  const clock = new TestClock()
  const app = await startTestApp({ TOKEN_KEYS: tokenKeys, ...env }, { clock })
  const id = await register(app.url)
  return Object.assign(app, { clock, id, token: await tokenOf(app.url) })
}
