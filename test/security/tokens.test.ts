import assert from 'node:assert/strict'
import { sign } from 'node:crypto'
import { describe, it } from 'node:test'
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTHeaderParameters,
  jwtVerify,
  SignJWT,
} from 'jose'
import { Argon2Passwords } from '../../src/security/passwords.ts'
import { startTestApp, startTestAppOn, type TestApp } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { ask, postJson, type RawResponse, sendRaw } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { askAs, isValid, password, register, startWithUser, tokenOf, tryLogin } from '../support/logins.ts'
import { runDuet } from '../support/process.ts'
import { assertRefusal } from '../support/refusal.ts'
import { send, unstorable } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

const [ourKey] = JSON.parse(tokenKeys).keys as [JWK & { kid: string; x: string; d: string }]

type Started = Awaited<ReturnType<typeof startWithUser>>

function assertUnauthorized(response: RawResponse, text: string, challenge: RegExp): void {
  assertRefusal(response, 401, text)
  assert.match(response.headers.get('www-authenticate') ?? '', challenge)
}

const plainChallenge = /^Bearer$/
const invalidToken = /^Bearer error="invalid_token", error_description="[^"]+"$/

/** The claims of a valid token, signed with our key by default. */
async function signed(
  { token }: Pick<Started, 'token'>,
  { header = {}, claims = {}, key }: { header?: object; claims?: object; key?: Parameters<SignJWT['sign']>[0] } = {},
): Promise<string> {
  const payload = Object.entries({ ...decodeJwt(token), ...claims }).filter(([, value]) => value !== undefined)
  const all = Object.entries({ alg: 'EdDSA', kid: ourKey.kid, ...header }).filter(([, value]) => value !== undefined)
  return await new SignJWT(Object.fromEntries(payload))
    .setProtectedHeader(Object.fromEntries(all) as unknown as JWTHeaderParameters)
    .sign(key ?? (await importJWK(ourKey, 'EdDSA')), { crit: { 'urn:example:must': true } })
}

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

const parts = (token: string) => token.split('.') as [string, string, string]
const attacker = await generateKeyPair('Ed25519', { extractable: true })
const attackerJwk = await exportJWK(attacker.publicKey)
const secondsLeft = (app: Started, seconds: number) => Math.floor(app.clock.now() / 1000) + seconds

const attacks: Readonly<Record<string, (app: Started) => string | Promise<string>>> = {
  'alg none without a signature': ({ token }) => `${encoded({ alg: 'none', kid: ourKey.kid })}.${parts(token)[1]}.`,
  'HS256 with the bytes of our public key as secret': app =>
    signed(app, { header: { alg: 'HS256' }, key: Buffer.from(ourKey.x, 'base64url') }),
  "the attacker's key under our kid": app => signed(app, { key: attacker.privateKey }),
  "the attacker's key in the header": app => signed(app, { header: { jwk: attackerJwk }, key: attacker.privateKey }),
  "the address of the attacker's key set": app =>
    signed(app, { header: { jku: 'http://127.0.0.1:9/jwks.json', kid: 'x' }, key: attacker.privateKey }),
  'an unknown kid': app => signed(app, { header: { kid: 'another' } }),
  'a kid of a prototype': app => signed(app, { header: { kid: '__proto__' } }),
  'no kid': app => signed(app, { header: { kid: undefined } }),
  'a critical extension that we do not know': app =>
    signed(app, { header: { crit: ['urn:example:must'], 'urn:example:must': 1 } }),
  'no exp': app => signed(app, { claims: { exp: undefined } }),
  'an exp that is not a number': async ({ token }) => {
    const [header] = parts(token)
    const payload = encoded({ ...decodeJwt(token), exp: '9999999999' })
    const key = { key: { ...ourKey, kty: 'OKP' }, format: 'jwk' } as const
    return `${header}.${payload}.${sign(null, Buffer.from(`${header}.${payload}`), key).toString('base64url')}`
  },
  'no ver': app => signed(app, { claims: { ver: undefined } }),
  'another ver': app => signed(app, { claims: { ver: 'x' } }),
  'no jti': app => signed(app, { claims: { jti: undefined } }),
  'another iss': app => signed(app, { claims: { iss: 'somebody' } }),
  'no iss': app => signed(app, { claims: { iss: undefined } }),
  expired: app => signed(app, { claims: { exp: secondsLeft(app, 0) } }),
  'not valid yet': app => signed(app, { claims: { nbf: secondsLeft(app, 60) } }),
  'a user that never existed': app => signed(app, { claims: { sub: '4711' } }),
  'a sub that is not an id': app => signed(app, { claims: { sub: `0${app.id}` } }),
  'a signature cut short': ({ token }) => token.slice(0, -2),
  'a signature with one bit changed': ({ token }) => {
    const [header, payload, signature] = parts(token)
    const bytes = Buffer.from(signature, 'base64url')
    bytes[7] = (bytes[7] ?? 0) ^ 1
    return `${header}.${payload}.${bytes.toString('base64url')}`
  },
  'no signature': ({ token }) => parts(token).slice(0, 2).join('.'),
  'another role under the old signature': ({ token }) => {
    const [header, , signature] = parts(token)
    return `${header}.${encoded({ ...decodeJwt(token), role: 'admin' })}.${signature}`
  },
  'four parts': ({ token }) => `${token}.x`,
  '10 KB of it': ({ token }) => `${token}${'x'.repeat(10_000)}`,
  garbage: () => 'garbage',
}

describe('Tokens of a user', () => {
  const app = shared(() => startWithUser())

  it('R-AUTH-1 R-AUTH-2: a login answers one field, a JSON Web Token that our public keys verify', async () => {
    const response = await tryLogin(app.url)
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('cache-control'), 'no-store')
    assert.equal(response.headers.get('set-cookie'), undefined)
    assert.deepEqual(Object.keys(JSON.parse(response.body)), ['token'])

    const { token } = JSON.parse(response.body)
    const jwks = JSON.parse((await ask(`${app.url}/.well-known/jwks.json`)).body)
    const { x, kid } = ourKey
    const published = { keys: [{ kty: 'OKP', crv: 'Ed25519', x, kid, alg: 'EdDSA', use: 'sig' }] }
    assert.deepEqual(jwks, published, 'and nothing private')
    assert.deepEqual(decodeProtectedHeader(token), { alg: 'EdDSA', kid: ourKey.kid, typ: 'JWT' })
    const currentDate = new Date(app.clock.now())
    const { payload } = await jwtVerify(token, createLocalJWKSet(jwks), { issuer: 'duet', currentDate })
    const { ver, jti, iat, exp, auth_time: loggedInAt, ...rest } = payload
    assert.deepEqual(rest, { iss: 'duet', sub: String(app.id), role: 'member' })
    assert.equal(iat, Math.floor(app.clock.now() / 1000))
    assert.equal(exp, Number(iat) + 3600)
    assert.equal(loggedInAt, iat)
    assert.ok(typeof ver === 'string' && ver.length >= 16)
    assert.ok(typeof jti === 'string' && jti.length >= 16)
    assert.notEqual(decodeJwt(await tokenOf(app.url)).jti, jti)
  })

  it('bodies that are not a login are refused with 400, before any password is compared', async () => {
    const email = 'ann@example.com'
    const objects = [
      { email },
      { password },
      { email: '', password },
      { email, password: '' },
      { email: [email], password },
      { email, password: 12_345_678 },
      { email, password: null },
      { email: 'a'.repeat(321), password },
      { email, password: 'p'.repeat(129) },
      ...unstorable.flatMap(text => [
        { email: text + email, password },
        { email, password: text + password },
      ]),
    ]
    const bodies = ['', 'null', '[]', '"x"', '{', '{}', ...objects.map(body => JSON.stringify(body))]
    for (const body of bodies) assertRefusal(await postJson(`${app.url}/tokens`, body), 400)
    assertRefusal(await postJson(`${app.url}/tokens`, 'email=a&password=b', 'application/x-www-form-urlencoded'), 415)
  })

  it('R-AUTH-3 R-AUTH-5: a token in the Authorization header is accepted, with the scheme in any case of letters', async () => {
    for (const authorization of [`Bearer ${app.token}`, `bearer ${app.token}`, `BEARER  ${app.token}`]) {
      const response = await ask(`${app.url}/users/me`, { headers: { authorization } })
      assert.equal(response.status, 200, authorization)
      assert.equal(JSON.parse(response.body).id, app.id)
    }
  })

  it('R-ERR-8: a missing token, or one in the query string or a cookie, gets 401 with a challenge without an error', async () => {
    const headers = { cookie: `token=${app.token}; Authorization=Bearer ${app.token}` }
    for (const path of ['/users/me', '/api/users/me', `/users/me?access_token=${app.token}`])
      assertUnauthorized(await ask(app.url + path, { headers }), 'Authentication required', plainChallenge)
  })

  it('R-ERR-8: forged, foreign, broken and expired tokens are refused, also on the second try', async () => {
    assert.ok(await isValid(await signed(app), app.url), 'the test can also sign a valid token')
    for (const [name, forge] of Object.entries(attacks)) {
      const token = await forge(app)
      for (const path of ['/users/me', '/users/me', `/users/${app.id}`, '/users']) {
        const response = await askAs(token, app.url + path)
        assert.equal(response.status, 401, `${name}: ${path}`)
        assertUnauthorized(response, 'Invalid or expired token', invalidToken)
      }
    }
    assert.ok(await isValid(app.token, app.url))
  })

  it('an Authorization header with another scheme, without a scheme, sent twice, or long by blanks gets 401', async () => {
    const sendLines = (lines: string) =>
      sendRaw(app.port, `GET /users/${app.id} HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n`)
    const good = `Authorization: Bearer ${app.token}\r\n`
    assert.equal((await sendLines(good)).status, 200)
    const long = `Authorization: Bearer${' '.repeat(15_000)}${app.token}\r\n` // it would be kept with the token
    for (const lines of [good + good, `${good}Authorization: Bearer x\r\n`, 'Authorization: Bearer\r\n', long])
      assertUnauthorized(await sendLines(lines), 'Invalid or expired token', invalidToken)
    // With another scheme the challenge contains no error: RFC 6750, section 3.1.
    const basic = `Basic ${Buffer.from(`ann@example.com:${password}`).toString('base64')}`
    const schemes = [`Token ${app.token}`, `Bearers ${app.token}`, `${basic}, Bearer ${app.token}`]
    for (const value of [basic, '', app.token, ...schemes])
      assertUnauthorized(await sendLines(`Authorization: ${value}\r\n`), 'Invalid or expired token', plainChallenge)
    assertRefusal(await sendLines(`Authorization: Bearer ${'x'.repeat(100_000)}\r\n`), 431)
  })

  it('a bad token is refused on public operations too, and ignored on routes without authentication', async () => {
    const headers = { authorization: 'Bearer bad' }
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      const response = await ask(`${app.url}/users/${app.id}`, { method, headers })
      assertUnauthorized(response, 'Invalid or expired token', invalidToken)
    }
    assert.equal((await ask(`${app.url}/users/${app.id}`)).status, 200)
    const pages = ['/docs', '/docs/api', '/docs/graphql', '/docs/search.json', '/openapi.json']
    for (const path of ['/health/live', '/health/ready', '/.well-known/jwks.json', '/metrics', ...pages])
      assert.equal((await ask(app.url + path, { headers })).status, 200, path)
    const login = (secret: string) => send(app, 'POST /tokens', { email: 'ann@example.com', password: secret }, 'bad')
    assert.equal((await login(password)).status, 200)
    assertUnauthorized(await login('wrong password'), 'Invalid email or password', /^Bearer\b/)
  })
})

for (const kind of engineKinds) {
  describe(`on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, { LOGIN_LIMIT_MAX: '0' }))

    const envOf = ({ database: { url } }: TestApp) => ({ DATABASE_URL: url, TOKEN_KEYS: tokenKeys })

    it('F21: a failed login causes the same work and gets the same answer for every reason', async t => {
      await register(app.url)
      await postJson(`${app.url}/users`, '{"name":"Bob","email":"bob@example.com"}')
      const matches = t.mock.method(Argon2Passwords.prototype, 'matches')
      const headers: string[][] = []
      for (const [email, secret = password] of [
        ['ann@example.com', 'wrong password'],
        ['nobody@example.com'],
        ['bob@example.com'], // has no password
        [' ann@example.com'],
        ["' or 1=1 --"],
        ['ann@example.com', `${password} `],
        ['ann@example.com', password.toUpperCase()],
      ] as const) {
        matches.mock.resetCalls()
        const failure = await tryLogin(app.url, email, secret)
        assertUnauthorized(failure, 'Invalid email or password', plainChallenge)
        headers.push([...failure.headers.keys()].sort())
        const compared = matches.mock.calls.map(call => call.arguments[0])
        assert.deepEqual([headers.at(-1), compared], [headers[0], [secret]], email)
      }
    })

    it('the token of a deleted user is invalid at once, even if it was verified before, and a new user with that id does not make it valid', async () => {
      const email = 'dan@example.com'
      const id = await register(app.url, email)
      const token = await tokenOf(app.url, email)
      assert.ok(await isValid(token, app.url))
      await using other = kind.kind === 'postgres' ? await startTestApp(envOf(app)) : undefined
      if (other !== undefined) assert.ok(await isValid(token, other.url))

      assert.equal((await send(app, `DELETE /users/${id}`)).status, 204)
      for (const { url } of [app, other ?? app]) assert.ok(!(await isValid(token, url)))

      assert.equal((await send(app, `PUT /users/${id}`, { name: 'Ann', email, password })).status, 201)
      assert.ok(!(await isValid(token, app.url)))
      assert.equal(decodeJwt(await tokenOf(app.url, email)).sub, String(id))
      assert.ok(await isValid(await tokenOf(app.url, email), app.url))
    })

    it('users set-role works while a server runs, by e-mail and by id, and makes all older tokens invalid', async () => {
      const email = 'fay@example.com'
      const id = await register(app.url, email)
      const token = await tokenOf(app.url, email)
      assert.ok(await isValid(token, app.url))
      const user = kind.kind === 'sqlite' ? 'FAY@example.com' : String(id)
      const { code, stdout, stderr } = await runDuet(['users', 'set-role', user, 'admin'], { env: envOf(app) })
      assert.equal(code, 0, stderr)
      assert.match(stdout, /now admin/)
      assert.ok(!(await isValid(token, app.url)))
      assert.equal(decodeJwt(await tokenOf(app.url, email)).role, 'admin')
    })
  })
}
