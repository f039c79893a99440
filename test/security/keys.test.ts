import assert from 'node:assert/strict'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it, test } from 'node:test'
import { decodeProtectedHeader, exportJWK, generateKeyPair, type JWK } from 'jose'
import { systemClock, systemRandomness } from '../../src/app.ts'
import { ConfigError, type Environment } from '../../src/config.ts'
import { generateKeySet, readKeys } from '../../src/security/keys.ts'
import { JwtSigner } from '../../src/security/tokens.ts'
import { startTestApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import { inForm } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { isValid, register, tokenOf } from '../support/logins.ts'
import { runDuet, serveDuet } from '../support/process.ts'
import { SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

const newKey = async (): Promise<JWK> => JSON.parse(await generateKeySet()).keys[0]

/** The message of an app that must not start. If it starts by mistake, it is stopped. */
async function refusalOf(env: Environment): Promise<string> {
  const start = async () => {
    await using _app = await startTestApp(env)
    assert.fail('the app has started')
  }
  const error = await start().catch(error => error)
  return error instanceof ConfigError ? error.message : assert.fail(error)
}

const setOf = (...keys: unknown[]) => JSON.stringify({ keys })

test('SIGHUP reloads the key file, and one that cannot be read is told in the log, without its content', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'keys.json')
  const [first, second] = [await newKey(), await newKey()]
  writeFileSync(path, setOf(first))
  await using duet = serveDuet({ TOKEN_KEYS: path, LOG_LEVEL: 'info' })
  const { url } = await duet.address()
  await register(url)
  const token = await tokenOf(url)
  writeFileSync(path, setOf(second, first))
  duet.child.kill('SIGHUP')
  await waitUntil(async () => (await ask(`${url}/.well-known/jwks.json`)).body.includes(String(second.kid)))
  writeFileSync(path, 'half a file')
  duet.child.kill('SIGHUP')
  await waitUntil(() => duet.stdout.includes('the old ones stay in use'))
  assert.ok(await isValid(token, url))
  assert.doesNotMatch(duet.stdout, /half a file/)
})

for (const THREADS of inForm(['2'], ['1', '2'])) {
  describe(`Reading the keys again, with THREADS=${THREADS}`, () => {
    const parts = new AsyncDisposableStack()
    let app: Awaited<ReturnType<typeof startTestApp>>
    let path: string
    const reload = async (...keys: JWK[]) => {
      writeFileSync(path, setOf(...keys))
      await app.app.reloadKeys()
    }
    before(async () => {
      path = join(parts.use(temporaryFolder()).path, 'keys.json')
      writeFileSync(path, setOf(await newKey()))
      app = parts.use(await startTestApp({ TOKEN_KEYS: path, THREADS, RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }))
      await register(app.url)
    })
    after(() => parts.disposeAsync())

    /** Opens so many sockets that every thread has some of them. */
    const connect = (sockets: DisposableStack, token?: string) =>
      Promise.all(Array.from({ length: 12 }, async () => sockets.use(await SocketClient.connect(app, { token }))))

    it('closes every socket whose token a removed key has signed with 4403, and no other, and none if the file cannot be read', async () => {
      const [first, second] = [await newKey(), await newKey()]
      using sockets = new DisposableStack()
      await reload(first)
      const oldToken = await tokenOf(app.url)
      const old = await connect(sockets, oldToken)
      await reload(second, first)
      const freshToken = await tokenOf(app.url)
      assert.equal(decodeProtectedHeader(freshToken).kid, second.kid)
      const others = [...(await connect(sockets, freshToken)), ...(await connect(sockets))]
      writeFileSync(path, 'half a file')
      await app.app.reloadKeys()
      assert.ok(await isValid(oldToken, app.url))
      await assertOpen(old)
      await reload(second)
      const published: JWK[] = JSON.parse((await ask(`${app.url}/.well-known/jwks.json`)).body).keys
      assert.deepEqual([published.length, published[0]?.kid], [1, second.kid])
      for (let times = 0; times < 10; times++) assert.ok(!(await isValid(oldToken, app.url)))
      assert.ok(await isValid(freshToken, app.url))
      await assertOpen(others)
      await assertForbidden(old)
    })

    it('closes the sockets of a key that another one with its kid has replaced', async () => {
      const [key, other] = [await newKey(), await newKey()]
      using sockets = new DisposableStack()
      await reload(key)
      const token = await tokenOf(app.url)
      const clients = await connect(sockets, token)
      await reload({ ...other, kid: key.kid ?? '' })
      assert.ok(!(await isValid(token, app.url)))
      await assertForbidden(clients)
    })
  })
}

test('a token that was verified while its key was replaced is signed by the old key, whatever kid the new one has', async () => {
  const [key, other] = [await newKey(), await newKey()]
  const [keys, replaced] = await Promise.all([key, { ...other, kid: key.kid ?? '' }].map(one => readKeys(setOf(one))))
  assert.ok(keys && replaced)
  const signer = new JwtSigner({ keys, ttlSeconds: 60, clock: systemClock, randomness: systemRandomness })
  const loggedInAt = Math.floor(Date.now() / 1000)
  const user = { id: 1, role: 'member', tokenVersion: 'version' } as const
  const token = await signer.issue(user, { loggedInAt, endsAt: loggedInAt + 60 })
  const verifying = signer.verify(token)
  signer.use(replaced)
  assert.equal((await verifying)?.signedBy, key.x)
  assert.equal(signer.knows(key.x ?? ''), false)
  assert.equal(await signer.verify(token), undefined)
})

async function assertForbidden(clients: readonly SocketClient[]): Promise<void> {
  for (const client of clients) {
    client.send({ type: 'ping' })
    await client.until(() => client.isClosed || client.messages.some(({ type }) => type === 'pong'))
    assert.ok(client.isClosed, 'a socket with the token of a removed key is still open')
    assert.deepEqual(await client.closed, { code: 4403, reason: 'Forbidden' })
  }
}

async function assertOpen(clients: readonly SocketClient[]): Promise<void> {
  for (const client of clients) assert.deepEqual(await client.read('{ __typename }'), { __typename: 'Query' })
}

test('SQLite has a key file next to the database, readable by its owner only, and tokens stay valid after a restart', async () => {
  using folder = temporaryFolder()
  const DATABASE_URL = `sqlite:${join(folder.path, 'duet.db')}`
  const keyFile = join(folder.path, 'duet.db-keys.json')
  let token: string
  {
    await using app = await startTestApp({ DATABASE_URL })
    await register(app.url)
    token = await tokenOf(app.url)
  }
  assert.equal(statSync(keyFile).mode & 0o777, 0o600)
  const kept = readFileSync(keyFile, 'utf8')
  {
    await using app = await startTestApp({ DATABASE_URL })
    assert.ok(await isValid(token, app.url))
  }
  assert.equal(readFileSync(keyFile, 'utf8'), kept)
  const files = readdirSync(folder.path).filter(name => name.includes('keys'))
  assert.deepEqual(files, ['duet.db-keys.json'])
})

test('an unusable key file stops the start with a message that names but does not quote it, and is not changed', async () => {
  using folder = temporaryFolder()
  const keyFile = join(folder.path, 'duet.db-keys.json')
  for (const text of ['', '{"keys":[{"kty":"OKP","d":"secret"', '{"keys":[{"kty":"oct","k":"secret"}]}']) {
    writeFileSync(keyFile, text)
    const message = await refusalOf({ DATABASE_URL: `sqlite:${join(folder.path, 'duet.db')}` })
    assert.ok(message.includes(keyFile) && !message.includes('secret'), message)
    assert.equal(readFileSync(keyFile, 'utf8'), text)
  }
})

test('keys generate prints a set in one line that TOKEN_KEYS accepts', async () => {
  const { code, stdout, stderr } = await runDuet(['keys', 'generate'])
  assert.equal(code, 0, stderr)
  assert.equal(stdout.trimEnd().split('\n').length, 1)
  const [{ kid }] = JSON.parse(stdout).keys
  await using app = await startTestApp({ TOKEN_KEYS: `  ${stdout}` })
  const [published] = JSON.parse((await ask(`${app.url}/.well-known/jwks.json`)).body).keys
  assert.equal(published.kid, kid)
})

test('a set may begin with blanks, and a key without a kid gets one that depends only on the key', async () => {
  const { kid, ...anonymous } = await newKey()
  const [key] = await readKeys(`\n ${setOf(anonymous)}`)
  assert.equal(key.id, kid)
})

test('a bad set, or none with PostgreSQL, is refused with one line that names TOKEN_KEYS and does not quote the set', async () => {
  const good = await newKey()
  const other = await newKey()
  const p256 = await exportJWK((await generateKeyPair('ES256', { extractable: true })).privateKey)
  const { d, ...publicOnly } = good
  const { kid, ...unnamed } = good
  using folder = temporaryFolder()
  const unreadable = join(folder.path, 'keys.json')
  writeFileSync(unreadable, 'secret')
  chmodSync(unreadable, 0o000)
  const bad: Readonly<Record<string, string>> = {
    'not JSON': `{"keys":[${JSON.stringify(good)}`,
    'no keys': setOf(),
    'keys that are no list': JSON.stringify({ keys: good }),
    'a key alone': JSON.stringify(good),
    'a key that is null': setOf(null),
    'a key that is a text': setOf(good.d),
    'a public key': setOf(publicOnly),
    'a public key after a private one': setOf(good, publicOnly),
    'a key of another curve': setOf(p256),
    'a symmetric key': setOf({ kty: 'oct', k: good.d }),
    'a private part that is too short': setOf({ ...good, d: good.d?.slice(1) }),
    'halves of two keys': setOf({ ...good, d: other.d }),
    'one key twice': setOf(good, good),
    'two keys of one kid': setOf(good, { ...other, kid }),
    'a key twice, once without its kid': setOf(good, unnamed),
    'a kid that is a number': setOf({ ...good, kid: 1 }),
    'an empty kid': setOf({ ...good, kid: '' }),
    'a path to nothing': join(folder.path, 'nothing.json'),
    'a folder': folder.path,
    'a file that holds no set': unreadable,
  }
  for (const [name, TOKEN_KEYS] of Object.entries(bad)) {
    const message = await refusalOf({ TOKEN_KEYS })
    assert.match(message, /^TOKEN_KEYS: [^\n]+$/, name)
    for (const secret of [d, other.d, good.x, p256.d, 'secret']) assert.ok(!message.includes(secret ?? '-'), name)
  }
  const message = await refusalOf({ DATABASE_URL: 'postgres://duet@127.0.0.1:9/duet' }) // where nobody listens
  assert.match(message, /^TOKEN_KEYS: is needed with PostgreSQL; [^\n]*keys generate[^\n]*$/)
})
