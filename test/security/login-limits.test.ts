import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unavailable } from '../../src/core/errors.ts'
import { execute } from '../faults/execute.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { sqlite } from '../support/engines.ts'
import { ask, postJson, type RawResponse } from '../support/http.ts'
import { isValid, password, register, tokenOf, tryLogin } from '../support/logins.ts'
import { assertRefusal } from '../support/refusal.ts'
import { atOnce, tally } from '../support/rest.ts'

async function start(env: Readonly<Record<string, string>> = {}) {
  const clock = new TestClock()
  const app = await startTestApp({ RATE_LIMIT_MAX: '0', ...env }, { clock })
  await register(app.url)
  const fail = async (email = 'ann@example.com') => (await tryLogin(app.url, email, 'wrong password')).status
  const failures = async (count: number) => {
    for (let done = 0; done < count; done++) assert.equal(await fail(), 401)
  }
  return Object.assign(app, { clock, fail, failures })
}

function assertLimited(response: RawResponse, retryAfter: number): void {
  assertRefusal(response, 429, 'Too many requests. Try again later.')
  assert.equal(response.headers.get('retry-after'), String(retryAfter))
}

test('after ten failed logins with one e-mail even the right password is refused, until a minute after the first', async () => {
  await using app = await start()
  await register(app.url, 'bob@example.com')
  const token = await tokenOf(app.url)
  await app.failures(9)
  assert.equal(await app.fail('ANN@example.com'), 401, 'the same e-mail in another case')
  assertLimited(await tryLogin(app.url), 60)
  assertLimited(await postJson(`${app.url}/api/tokens`, JSON.stringify({ email: 'ann@example.com', password })), 60)
  assert.equal((await tryLogin(app.url, 'bob@example.com')).status, 200, 'the limit of another e-mail is separate')
  assert.ok(await isValid(token, app.url), 'a token still works')
  app.clock.pass(59_999)
  assertLimited(await tryLogin(app.url), 1)
  app.clock.pass(1)
  assert.equal((await tryLogin(app.url)).status, 200)
})

test('a successful login neither counts as a failure nor resets the count, and an unknown e-mail has the same limit, which reveals nothing', async () => {
  await using app = await start()
  await app.failures(9)
  for (let good = 0; good < 3; good++) assert.equal((await tryLogin(app.url)).status, 200)
  await app.failures(1)
  for (let done = 0; done < 10; done++) assert.equal(await app.fail('nobody@example.com'), 401)
  for (const email of ['ann@example.com', 'nobody@example.com']) assertLimited(await tryLogin(app.url, email), 60)
})

test('concurrent attempts cannot exceed the limit', async () => {
  await using app = await start()
  const answers = await atOnce(40, () => tryLogin(app.url, undefined, 'wrong password'))
  assert.deepEqual(tally(answers), { 401: 10, 429: 30 })
})

test('a client has a hundred attempts for all e-mails together, and another client has its own limit', async () => {
  await using app = await start({ TRUST_PROXY: '127.0.0.1' })
  await app.failures(10)
  for (let refused = 0; refused < 89; refused++) assert.equal(await app.fail(), 429)
  assert.equal((await tryLogin(app.url, 'eve@example.com')).status, 401, 'the hundredth')
  assertLimited(await tryLogin(app.url, 'bob@example.com'), 60)
  const body = JSON.stringify({ email: 'ann@example.com', password })
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': '192.0.2.1' }
  assert.equal((await ask(`${app.url}/tokens`, { method: 'POST', headers, body })).status, 200)
  app.clock.pass(60_000)
  assert.equal((await tryLogin(app.url)).status, 200)
})

test('LOGIN_LIMIT_MAX sets the limit of failures, and ten times that number of attempts; malformed bodies do not count', async () => {
  await using app = await start({ LOGIN_LIMIT_MAX: '1' })
  for (const body of ['{', '{}', '[]', '{"email":"ann@example.com"}', '{"email":"ann@example.com","password":7}']) {
    for (let times = 0; times < 5; times++) assert.equal((await postJson(`${app.url}/tokens`, body)).status, 400)
  }
  await app.failures(1)
  assertLimited(await tryLogin(app.url), 60)
  for (let attempt = 3; attempt <= 10; attempt++) assert.equal(await app.fail(`${attempt}@example.com`), 401)
  assertLimited(await tryLogin(app.url, '11@example.com'), 60)
})

test('LOGIN_LIMIT_MAX=0 turns both limits off', async () => {
  await using app = await start({ LOGIN_LIMIT_MAX: '0' })
  await app.failures(101)
  assert.equal((await tryLogin(app.url)).status, 200)
})

test('an attempt during an outage of hashing or of the store does not count as a failure', async () => {
  let isAway = true
  const matches = async (given: string) =>
    isAway ? Promise.reject(unavailable(new Error('away'))) : given === password
  const passwords = { hash: async () => 'a hash', matches }
  await using app = await startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '2' }, { passwords })
  await register(app.url)
  const statusOf = async (secret = password) => (await tryLogin(app.url, 'ann@example.com', secret)).status
  for (let times = 0; times < 3; times++) assert.equal(await statusOf(), 503)
  isAway = false
  await execute(app.database, 'alter table users rename to lost')
  for (let times = 0; times < 3; times++) assert.equal(await statusOf(), 500)
  await execute(app.database, 'alter table lost rename to users')
  const statuses = [await statusOf('wrong'), await statusOf(), await statusOf('wrong'), await statusOf()]
  assert.deepEqual(statuses, [401, 200, 401, 429])
})
