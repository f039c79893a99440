import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import type { Mail } from '../../src/core/ports.ts'
import { sql } from '../../src/storage/sql.ts'
import { catalogue } from '../storage/contract-verbs.ts'
import { startTestApp, startTestAppOn, type TestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { engineKinds, sqlite } from '../support/engines.ts'
import { onlyOneThread } from '../support/form.ts'
import { assertRefusal } from '../support/refusal.ts'
import { atOnce, bodyOf, createMember, createUser, logIn, send, sendText, tally } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { loggedSecret } from './mail-server.ts'

const unlimited = { LOGIN_LIMIT_MAX: '0', RATE_LIMIT_MAX: '0' }
const often = { mailEveryMs: 5 }
const password = 'a new password'

const ask = async (app: TestApp, email: string) =>
  assert.deepEqual(bodyOf(await send(app, 'POST /password-resets', { email }), 202), {})

/** Asks for a mail, and returns the path with its secret. */
async function linkTo(app: TestApp, email: string): Promise<string> {
  const before = app.logs.length
  await ask(app, email)
  await waitUntil(async () => (await waiting(app)) === 0) // a request until then would be one with this one
  assert.ok(app.logs.slice(before).some(({ mail }) => mail !== undefined))
  return `/password-resets/${await loggedSecret(app.logs, email)}`
}

async function assertInvalid(app: TestApp, path: string): Promise<void> {
  assertRefusal(await send(app, `PUT ${path}`, { password }), 404, 'This link is no longer valid')
}

const waiting = async (app: TestApp) =>
  (await app.engine.read({ text: 'select id from password_resets where try_at is not null', values: [] })).length

for (const kind of engineKinds) {
  describe(`A forgotten password, on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, unlimited, often))

    it('is replaced once by means of a link, and all tokens, sockets and other links of the user end', async () => {
      const { email, token } = await createMember(app)
      using socket = await SocketClient.connect(app, { token })
      const former = await linkTo(app, email)
      const link = await linkTo(app, email.toUpperCase().toLowerCase())
      assertRefusal(await send(app, `PUT ${link}`, { password: 'short' }), 400)
      assert.equal((await send(app, `PUT ${link}`, { password })).status, 204)
      assert.equal((await socket.closed).code, 4403)
      for (const path of [link, former]) await assertInvalid(app, path)
      assert.equal((await send(app, 'GET /users/me', undefined, token)).status, 401)
      await logIn(app, email, password)
    })

    it('of two requests with one link at the same moment, one sets the password', async () => {
      const { email } = await createMember(app)
      const link = await linkTo(app, email)
      const answers = await atOnce(4, index => send(app, `PUT ${link}`, { password: `password ${index}` }))
      assert.deepEqual(tally(answers), { 204: 1, 404: 3 })
      await logIn(app, email, `password ${answers.findIndex(({ status }) => status === 204)}`)
    })

    it('a change of the password or the e-mail, or the end of the user, voids all links, a change of the name none', async () => {
      const { id, email, token } = await createMember(app)
      const first = await linkTo(app, email)
      await send(app, `PATCH /users/${id}`, { name: 'Another' }, token)
      assertRefusal(await send(app, `PUT ${first}`, { password: 'short' }), 400)
      await send(app, `PATCH /users/${id}`, { password: 'right password' }, token)
      await assertInvalid(app, first)
      const second = await linkTo(app, email)
      await send(app, `PATCH /users/${id}`, { email: `other-${email}` })
      await assertInvalid(app, second)
      const third = await linkTo(app, `other-${email}`)
      await send(app, `DELETE /users/${id}`)
      await createUser(app, { email: `other-${email}`, password: 'right password' })
      await assertInvalid(app, third)
    })

    it('an e-mail that nobody has, or a user without a password, gets the same answer and no mail', async () => {
      const { email } = await createUser(app)
      const mails = () => app.logs.filter(({ mail }) => mail !== undefined).length
      const before = mails()
      for (const each of [email, 'nobody@example.com', "'--@example.com"]) await ask(app, each)
      await waitUntil(async () => (await waiting(app)) === 0)
      assert.equal(mails(), before)
    })

    it('a user gets five mails in half an hour, and requests while one waits are one', async () => {
      const { email } = await createMember(app)
      for (let sent = 0; sent < 5; sent++) await linkTo(app, email)
      await atOnce(5, () => ask(app, email))
      await waitUntil(async () => (await waiting(app)) === 0)
      assert.equal(app.logs.filter(({ mail }) => (mail as { to?: string })?.to === email).length, 5)
    })
  })
}

test('10,000 mails wait at most, then requests get 503', async () => {
  await using full = await startTestAppOn(sqlite, unlimited, { mailEveryMs: 3_600_000 })
  await using engine = full.database.open(catalogue)
  await engine.write('run', [
    sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < 9999)
        insert into password_resets (email_key, requested_at, try_at, expires_at)
        select cast(i as text), now_plus(0), now_plus(0), now_plus(1800) from n`,
  ])
  await ask(full, 'one@example.com')
  assertRefusal(await send(full, 'POST /password-resets', { email: 'two@example.com' }), 503)
})

test('a link is valid for 30 minutes after its mail, which says so', { skip: onlyOneThread }, async () => {
  const clock = new TestClock()
  await using app = await startTestAppOn(sqlite, unlimited, { ...often, clock })
  const { email } = await createMember(app)
  const link = await linkTo(app, email)
  assert.ok(app.logs.some(({ mail }) => (mail as Mail | undefined)?.text.includes('within 30 minutes')))
  clock.pass(30 * 60_000 - 1)
  assertRefusal(await send(app, `PUT ${link}`, { password: 'short' }), 400)
  clock.pass(1)
  await assertInvalid(app, link)
})

test('requests for an e-mail count like failed logins with it, and wrong secrets like failed logins of the client', async () => {
  await using app = await startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0' }, often)
  const { email } = await createMember(app)
  const link = await linkTo(app, email)
  for (let sent = 1; sent < 10; sent++) await ask(app, email)
  assertRefusal(await send(app, 'POST /password-resets', { email: email.toUpperCase() }), 429)
  assertRefusal(await send(app, 'POST /tokens', { email, password: 'right password' }), 429)
  for (const body of [{}, { email: 7 }, { email: 'a b@c' }])
    assertRefusal(await send(app, 'POST /password-resets', body), 400)
  await ask(app, 'other@example.com')
  for (let times = 0; times < 12; times++) assertRefusal(await send(app, `PUT ${link}`, { password: 'short' }), 400)
  const used = await linkTo(app, (await createMember(app)).email)
  assert.equal((await send(app, `PUT ${used}`, { password })).status, 204) // a right secret does not count
  for (const secret of ['x', 'x'.repeat(43), `${link.slice(17)}x`, '%00', ...'123456'])
    await assertInvalid(app, `/password-resets/${secret}`)
  const { status, headers } = await send(app, `PUT ${link}`, { password })
  assert.deepEqual([status, headers.get('retry-after') !== undefined], [429, true])
})

test('secrets, e-mails and passwords of mail servers reach neither the log nor metrics', async () => {
  const secret = 'S3cret-that-is-exactly-forty-three-chars-xx'
  const SMTP_URL = 'smtp://user:hunter2@127.0.0.1:1' // where nobody listens
  const mail = { SMTP_URL, MAIL_FROM: 'duet@example.com', PUBLIC_URL: 'https://duet.example' }
  const env = { ...unlimited, ...mail, LOG_LEVEL: 'trace', SLOW_OPERATION_MS: '1' }
  await using app = await startTestAppOn(sqlite, env, often)
  const { email } = await createMember(app)
  await ask(app, email)
  const path = `/password-resets/${secret}`
  const odd = [`/Password-Resets/${secret}`, `/x/${secret}`, `/password-resets//${secret}.`]
  const changed = [path.slice(0, 37), path.replace('/S', '/%53'), `${path}/`]
  for (const each of [path, `/api${path}`, ...odd, ...changed])
    for (const method of ['PUT', 'GET', 'DELETE']) await send(app, `${method} ${each}`, { password })
  await sendText(app, `PUT ${path}`, '{"password":')
  await waitUntil(() => app.logs.some(({ msg }) => msg === 'A mail could not be sent. It is tried again'))
  const told = JSON.stringify(app.logs) + (await send(app, 'GET /metrics')).body
  assert.match(told, /"reason":"ECONNREFUSED"/)
  assert.match(told, /"path":"\/password-resets\/:secret"/)
  assert.match(told, /duet_mails_total\{outcome="failed"\} 1\D.*outcome="given up"\} 0/s)
  for (const hidden of [secret.slice(0, 20), secret.slice(1), email, 'hunter2', password])
    assert.ok(!told.includes(hidden), hidden)
})

test('without SMTP_URL there is no mail in production, and links lead to PUBLIC_URL or here', async () => {
  await using silent = await startTestApp({ NODE_ENV: 'production' })
  assertRefusal(await send(silent, 'POST /password-resets', { email: 'a@b.c' }), 503, 'No mail is set up')
  for (const PUBLIC_URL of ['https://duet.example/shop/', '']) {
    await using app = await startTestAppOn(sqlite, { PUBLIC_URL, MAIL_FROM: 'duet@example.com' }, often)
    const { email } = await createMember(app)
    await linkTo(app, email)
    const { mail } = app.logs.find(({ mail }) => mail !== undefined) as { mail: { from: string; text: string } }
    assert.equal(mail.from, 'duet@example.com')
    assert.ok(mail.text.includes(`\n${PUBLIC_URL.slice(0, -1) || app.url}/console#/reset/`), mail.text)
  }
})
