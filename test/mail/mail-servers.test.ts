import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, it, test } from 'node:test'
import { dnsCache } from 'nodemailer/lib/shared'
import { makeCertificate } from '../../deploy/nginx.ts'
import { ResetSender } from '../../src/core/password-resets/sender.ts'
import { smtpMailer } from '../../src/mail/smtp-mailer.ts'
import { secrets } from '../../src/security/secrets.ts'
import { resetReads } from '../../src/storage/entities/password-resets.ts'
import { catalogue } from '../../src/storage/verbs.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { programMissing } from '../support/daemon.ts'
import { postgres, sqlite } from '../support/engines.ts'
import { temporaryFolder } from '../support/folder.ts'
import type { Served } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { serveConnections } from '../support/ports.ts'
import { atOnce, createMember, send } from '../support/rest.ts'
import { waitUntil, within } from '../support/wait.ts'
import { secretIn, startMailServer, type Trouble } from './mail-server.ts'

const unlimited = { LOGIN_LIMIT_MAX: '0', RATE_LIMIT_MAX: '0' }
const often = { mailEveryMs: 5 }
const mail = { to: 'ann@example.com', subject: 'Hello', text: 'A text.\n' }
const from = 'Duet <duet@example.com>'
type MailError = NodeJS.ErrnoException & { readonly originalCode?: string }
const codeOf = ({ originalCode, code }: MailError) => originalCode ?? code

describe('Mails over TLS', { skip: programMissing('openssl') ?? false }, () => {
  const folder = temporaryFolder()
  after(() => folder[Symbol.dispose]())
  const cert = makeCertificate(folder.path)
  const files = { cert, key: readFileSync(join(folder.path, 'privkey.pem')) }
  const trusted = `?tls.ca=${encodeURIComponent(cert)}`
  const login = {
    authOptional: false,
    onAuth: ({ username, password }, _session, done) =>
      password === 'p@ss' ? done(null, { user: username }) : done(new Error('No')),
  } satisfies Parameters<typeof startMailServer>[0]

  for (const secure of [true, false]) {
    const name = secure ? 'smtps://' : 'STARTTLS'
    it(`are encrypted from a login on, and a certificate that nobody trusts is refused, by ${name}`, async () => {
      await using server = await startMailServer({ ...files, ...login, secure, disabledCommands: [] })
      const url = server.env.SMTP_URL.replace('//', '//duet:p%40ss@')
      await smtpMailer({ url: `${url}/${trusted}`, from }).send(mail)
      const { isEncrypted, user, to } = await server.received()
      assert.deepEqual([isEncrypted, user, to], [true, 'duet', ['ann@example.com']])
      const untrusted = smtpMailer({ url, from }).send(mail)
      await assert.rejects(untrusted, (error: MailError) => codeOf(error) === 'DEPTH_ZERO_SELF_SIGNED_CERT')
      const wrong = server.env.SMTP_URL.replace('//', '//duet:wrong@')
      await assert.rejects(smtpMailer({ url: `${wrong}/${trusted}`, from }).send(mail), { code: 'EAUTH' })
      assert.equal(server.mails.length, 1)
    })
  }
})

test('a mail server beyond this machine must offer TLS, unless the address allows otherwise', async () => {
  await using server = await startMailServer()
  const host = '127.0.0.1.example.com' // leads here, but is no address of loopback
  dnsCache.set(host, { value: { addresses: ['127.0.0.1'] }, expires: Number.POSITIVE_INFINITY })
  const url = server.env.SMTP_URL.replace('127.0.0.1', host)
  await assert.rejects(smtpMailer({ url, from }).send(mail), { code: 'ETLS' })
  await smtpMailer({ url: `${url}?requireTLS=false`, from }).send(mail)
  assert.equal(server.mails.length, 1)
})

test('a mail has one recipient and the lines that belong to it, whatever the address is', async () => {
  await using server = await startMailServer()
  const { send } = smtpMailer({ url: server.env.SMTP_URL, from: '"Duet, the \\"service\\"" <duet@example.com>' })
  await send({ ...mail, to: "o'neil+x=y@example.com" })
  const { raw, to } = await server.received()
  assert.deepEqual(to, ["o'neil+x=y@example.com"])
  const names = raw.slice(0, raw.indexOf('\r\n\r\n')).match(/^[\w-]+(?=:)/gm)
  const usual = ['Auto-Submitted', 'From', 'To', 'Subject', 'Message-ID', 'Content-Transfer-Encoding', 'Date']
  assert.deepEqual(names, [...usual, 'MIME-Version', 'Content-Type'])
  const lists = ['a@b.c,eve@x.y', 'a@b.c>,<eve@x.y', 'eve@x.y:a@b.c', 'a@b.c\r\nBcc: eve@x.y']
  for (const to of [...lists, '"a"@b.c', 'a@b@c', '<a@b.c'])
    await assert.rejects(send({ ...mail, to }), { code: 'EADDRESS' }, to)
  assert.equal(server.mails.length, 1)
})

test('a mail server that hangs is given up, also after its greeting', async () => {
  for (const greeting of ['', '220 example.com\r\n']) {
    await using silent = await serveConnections(socket => void socket.write(greeting))
    const sent = smtpMailer({ url: `smtp://127.0.0.1:${silent.port}`, from }, 50).send(mail)
    await assert.rejects(within(sent, 'the end of a try'), { code: 'ETIMEDOUT' })
  }
})

test('a mail that a server refuses or loses is sent later, for ten minutes, while requests are answered', async () => {
  const clock = new TestClock()
  await using server = await startMailServer()
  await using app = await startTestAppOn(sqlite, { ...unlimited, ...server.env }, { ...often, clock })
  const lines = (level: number) => app.logs.filter(({ level: each, msg }) => each === level && /^A mail/.test(`${msg}`))
  for (const [at, trouble] of troubles.entries()) {
    const { email } = await createMember(app)
    server.trouble = trouble
    assert.equal((await send(app, 'POST /password-resets', { email })).status, 202)
    await waitUntil(() => lines(40).length === at + 1)
    server.trouble = undefined
    clock.pass(5_000)
    const { to, text } = await server.received(at + 1)
    assert.deepEqual(to, [email])
    assert.equal((await send(app, `PUT /password-resets/${secretIn(text)}`, { password: 'a new one' })).status, 204)
  }
  const told = lines(40).map(({ status }) => status)
  assert.deepEqual(told, [421, 550, 451, undefined])
  const { email } = await createMember(app)
  server.trouble = { recipient: 550 }
  await send(app, 'POST /password-resets', { email })
  for (let tries = 1; lines(50).length === 0; tries++) {
    await waitUntil(() => lines(40).length + lines(50).length === troubles.length + tries)
    if (tries === 3) await send(app, 'POST /password-resets', { email })
    clock.pass(120_000)
  }
  assert.equal(lines(40).length, troubles.length + 7, 'tried for ten minutes after the second request')
  assert.ok(!JSON.stringify(app.logs).includes(email))
  assert.deepEqual([lines(50)[0]?.reason, lines(50)[0]?.status], ['EENVELOPE', 550])
  server.trouble = undefined
  await send(app, 'POST /password-resets', { email })
  await server.received(troubles.length + 1)
})

const troubles: readonly Trouble[] = [{ connection: 421 }, { recipient: 550 }, { mail: 451 }, { mail: 'lost' }]

test('a restart loses no mail, also of an instance that ended while it sent it', async () => {
  const clock = new TestClock()
  await using server = await startMailServer()
  await using database = await sqlite.create()
  const env = { ...unlimited, ...server.env, DATABASE_URL: database.url, TOKEN_KEYS: tokenKeys }
  const seldom = { clock, mailEveryMs: 3_600_000 } // but at the start
  const request = async (app: Served) => {
    const { email } = await createMember(app)
    await send(app, 'POST /password-resets', { email })
    return email
  }
  const first = await startTestApp(env, seldom)
  const waits = await request(first)
  clock.pass(31 * 60_000) // too late for this request, not for the next one
  await send(first, 'POST /password-resets', { email: waits })
  await using engine = database.open(catalogue, { clock })
  assert.equal((await engine.read(resetReads.due())).length, 1)
  await first[Symbol.asyncDispose]()
  const second = await startTestApp(env, seldom)
  assert.deepEqual((await server.received()).to, [waits])
  const taken = await request(second)
  await waitUntil(async () => (await engine.write('takeResets', ['a hash'])).length === 1)
  await second[Symbol.asyncDispose]()
  clock.pass(59_999)
  await using _third = await startTestApp(env, { clock, ...often })
  clock.pass(1)
  assert.deepEqual((await server.received(2)).to, [taken])
  assert.equal(server.mails.length, 2)
})

test('a service stops while a mail server hangs, and the mail is sent after its start', async () => {
  const clock = new TestClock()
  await using silent = await serveConnections()
  await using server = await startMailServer()
  await using database = await sqlite.create()
  const env = { ...unlimited, ...server.env, DATABASE_URL: database.url, TOKEN_KEYS: tokenKeys }
  const app = await startTestApp({ ...env, SMTP_URL: `smtp://127.0.0.1:${silent.port}` }, { clock, ...often })
  const { email } = await createMember(app)
  await send(app, 'POST /password-resets', { email })
  await waitUntil(() => silent.connections.size === 1)
  await app[Symbol.asyncDispose]() // not after five seconds, when the mailer would give up
  assert.equal(silent.connections.size, 1)
  clock.pass(60_000)
  await using _app = await startTestApp(env, { clock, ...often })
  assert.deepEqual((await server.received()).to, [email])
})

test('a service that stops takes no further mails', async () => {
  let looks = 0
  const store = { hasDueResets: async () => looks++ < 100, takeResets: async () => [] }
  await new ResetSender({ store, secrets } as never)[Symbol.asyncDispose]()
  assert.equal(looks, 1)
})

test('two instances on PostgreSQL send each mail once', { skip: postgres.skip }, async () => {
  await using server = await startMailServer()
  await using first = await startTestAppOn(postgres, { ...unlimited, ...server.env }, often)
  const own = { DATABASE_URL: first.database.location, TOKEN_KEYS: tokenKeys }
  await using _second = await startTestApp({ ...unlimited, ...server.env, ...own }, often)
  const members = await atOnce(8, () => createMember(first))
  await atOnce(8, index => send(first, 'POST /password-resets', { email: members[index]?.email }))
  const due = { text: 'select id from password_resets where try_at is not null', values: [] }
  await waitUntil(async () => (await first.engine.read(due)).length === 0)
  const sent = server.mails.flatMap(({ to }) => to)
  assert.deepEqual(sent.toSorted(), members.map(({ email }) => email).toSorted())
})
