import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeJwt, importJWK, SignJWT } from 'jose'
import { startTestAppOn } from '../support/app.ts'
import type { TestClock } from '../support/clock.ts'
import { engineKinds } from '../support/engines.ts'
import type { RawResponse } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { isValid, password, register, startWithUser, tokenOf } from '../support/logins.ts'
import { assertRefusal } from '../support/refusal.ts'
import { bodyOf, send, sendText } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'

const renew = (app: { url: string }, token?: string, text?: string) => sendText(app, 'POST /tokens', text, token)
const tokenIn = (response: RawResponse) => bodyOf<{ token: string }>(response).token
const seconds = (clock: TestClock) => Math.floor(clock.now() / 1000)

test('a token is renewed without a body and with one that has no credentials; both tokens stay valid until they expire', async () => {
  await using app = await startWithUser()
  const loggedInAt = seconds(app.clock)
  app.clock.pass(600_000)
  for (const body of [undefined, '', '{}', '{"remember":true}']) {
    const response = await renew(app, app.token, body)
    const fresh = tokenIn(response)
    assert.equal(response.headers.get('cache-control'), 'no-store')
    const { iat, exp, auth_time, jti, ...rest } = decodeJwt(fresh)
    const { iat: _, exp: __, auth_time: ___, jti: oldId, ...old } = decodeJwt(app.token)
    assert.deepEqual(rest, old)
    assert.deepEqual([iat, exp, auth_time], [loggedInAt + 600, loggedInAt + 4200, loggedInAt])
    assert.notEqual(jti, oldId)
    assert.ok((await isValid(fresh, app.url)) && (await isValid(app.token, app.url)))
  }
  app.clock.pass(3_000_000)
  assertRefusal(await renew(app, app.token), 401, 'Invalid or expired token')
})

test('no renewed token lives past SESSION_TTL_SECONDS after the login, and then it cannot be renewed', async () => {
  await using app = await startWithUser({ SESSION_TTL_SECONDS: '5000' })
  const loggedInAt = seconds(app.clock)
  app.clock.pass(3_000_000)
  const second = tokenIn(await renew(app, app.token))
  assert.equal(decodeJwt(second).exp, loggedInAt + 5000)
  app.clock.pass(1_999_000)
  const third = tokenIn(await renew(app, second))
  assert.equal(decodeJwt(third).exp, loggedInAt + 5000)
  assert.ok(await isValid(third, app.url))
  app.clock.pass(1_000)
  assert.ok(!(await isValid(third, app.url)))
  assertRefusal(await renew(app, third), 401)
  assert.ok(await isValid(await tokenOf(app.url), app.url), 'a login starts a new session')
})

test('the first token of a login does not outlive the session either, which counts from the beginning of its second', async () => {
  await using app = await startWithUser({ SESSION_TTL_SECONDS: '60', TOKEN_TTL_SECONDS: '3600' })
  const { iat, auth_time, exp } = decodeJwt(app.token)
  assert.deepEqual([auth_time, exp], [iat, Number(iat) + 60])
  app.clock.pass(59_999)
  assert.ok(await isValid(app.token, app.url))
  assert.equal(decodeJwt(tokenIn(await renew(app, app.token))).exp, exp)
  app.clock.pass(1)
  assert.ok(!(await isValid(app.token, app.url)))
  assertRefusal(await renew(app, app.token), 401, 'Invalid or expired token')
  app.clock.pass(999)
  const late = decodeJwt(await tokenOf(app.url))
  assert.deepEqual([late.auth_time, late.exp], [late.iat, Number(late.iat) + 60])
})

test('an old token without auth_time, whose login time is its iat, outlives its session but cannot be renewed then', async () => {
  await using app = await startWithUser({ SESSION_TTL_SECONDS: '100' })
  const { auth_time: _, ...claims } = decodeJwt(app.token)
  const [key] = JSON.parse(tokenKeys).keys
  const older = await new SignJWT({ ...claims, exp: Number(claims.iat) + 3600 })
    .setProtectedHeader({ alg: 'EdDSA', kid: key.kid })
    .sign(await importJWK(key, 'EdDSA'))
  app.clock.pass(99_000)
  const { auth_time, exp } = decodeJwt(tokenIn(await renew(app, older)))
  assert.deepEqual([auth_time, exp], [claims.iat, Number(claims.iat) + 100])
  app.clock.pass(1_000)
  const refused = await renew(app, older)
  assertRefusal(refused, 401, 'The session has ended. Log in again.')
  assert.match(refused.headers.get('www-authenticate') ?? '', /^Bearer error="invalid_token"/)
  assert.ok(await isValid(older, app.url))
})

test('with credentials in the body the token is ignored, and without either the answer is 400', async () => {
  await using app = await startWithUser()
  const login = { email: 'ann@example.com', password }
  app.clock.pass(10_000)
  for (const token of [app.token, 'dead']) {
    assert.equal(decodeJwt(tokenIn(await send(app, 'POST /tokens', login, token))).auth_time, seconds(app.clock))
    assertRefusal(await send(app, 'POST /tokens', { ...login, password: 'wrong password' }, token), 401)
    for (const half of [{ email: login.email }, { password }, { ...login, email: null }])
      assertRefusal(await send(app, 'POST /tokens', half, token), 400, 'Email and password required')
    for (const body of ['null', '[]', '"x"', '{']) assertRefusal(await renew(app, token, body), 400)
  }
  for (const body of [undefined, '', '{}']) assertRefusal(await renew(app, undefined, body), 400)
  assertRefusal(await renew(app, 'dead'), 401, 'Invalid or expired token')
  assertRefusal(await sendText(app, 'POST /tokens', '{}', undefined, { authorization: 'Basic eDp5' }), 401)
})

test('renewing counts for the rate limit, but is no login attempt', async () => {
  await using app = await startWithUser({ LOGIN_LIMIT_MAX: '1', RATE_LIMIT_MAX: '20', RATE_LIMIT_PATHS: '/tokens' })
  for (let count = 0; count < 15; count++) {
    const response = await renew(app, app.token)
    assert.equal(response.status, 200, response.body)
    assert.match(response.headers.get('ratelimit') ?? '', /r=\d+/)
  }
  assert.ok(await tokenOf(app.url))
})

for (const kind of engineKinds) {
  test(`DELETE /tokens ends all tokens of the user, closes their sockets with 4403, and spares other users, on ${kind.name}`, {
    skip: kind.skip,
  }, async () => {
    await using app = await startTestAppOn(kind)
    await register(app.url)
    await register(app.url, 'bob@example.com')
    const [first, second] = [await tokenOf(app.url), await tokenOf(app.url)]
    const other = await tokenOf(app.url, 'bob@example.com')
    const renewed = tokenIn(await renew(app, first))
    using mine = await SocketClient.connect(app, { token: first })
    using his = await SocketClient.connect(app, { token: other })
    const left = await send(app, 'DELETE /tokens', undefined, second)
    assert.deepEqual([left.status, left.body], [204, ''])
    assert.equal((await mine.closed).code, 4403)
    for (const token of [first, second, renewed]) {
      assert.ok(!(await isValid(token, app.url)))
      assertRefusal(await renew(app, token), 401)
      assertRefusal(await send(app, 'DELETE /tokens', undefined, token), 401)
    }
    assert.ok(await isValid(other, app.url))
    assert.equal(his.websocket.readyState, his.websocket.OPEN)
    assert.ok(await isValid(await tokenOf(app.url), app.url))
  })
}
