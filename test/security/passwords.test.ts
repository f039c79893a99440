import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as argon2 from '@node-rs/argon2'
import { isOutage } from '../../src/core/errors.ts'
import { Argon2Passwords, hashing } from '../../src/security/passwords.ts'
import { startTestApp } from '../support/app.ts'
import { register, tryLogin } from '../support/logins.ts'

/** Functions that end when the test ends them, and that record their calls. */
function controlledArgon2() {
  const calls: { readonly end: () => void }[] = []
  let running = 0
  let most = 0
  const call = async () => {
    const { promise, resolve: end } = Promise.withResolvers<void>()
    calls.push({ end })
    most = Math.max(most, ++running)
    await promise
    running--
  }
  const verify = async (against: string | Uint8Array) => call().then(() => against === 'right')
  return { calls, most: () => most, hash: async () => call().then(() => 'a hash'), verify }
}

function boundsOf(atOnce: number, mayWait: number): typeof hashing {
  return { logins: { atOnce, mayWait }, newPasswords: { atOnce, mayWait } }
}

/** Waits until all work that does not depend on the test is done. */
const settle = () => new Promise(resolve => setImmediate(resolve))

/** Real hashing, so that later calls wait long enough. The queue is shorter than in the service, which saves time. */
const few = { logins: { atOnce: 2, mayWait: 4 }, newPasswords: { atOnce: 1, mayWait: 6 } }
const expensive = { passwords: new Argon2Passwords(few) }

test('a password is stored as salted argon2id with 19 MiB, two passes and one lane', async () => {
  const passwords = new Argon2Passwords()
  const [one, two] = await Promise.all([passwords.hash('a password'), passwords.hash('a password')])
  for (const hash of [one, two]) assert.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22,}\$[\w+/]{43}$/)
  assert.notEqual(one, two)
  assert.ok(await passwords.matches('a password', one))
  assert.ok(!(await passwords.matches('another password', one)))
})

test('F21: without a user no password matches, and the comparison costs as much as with one, in the same queue', async () => {
  const compared: string[] = []
  const verify: typeof argon2.verify = (hash, password) => {
    compared.push(String(hash))
    return argon2.verify(hash, password)
  }
  const passwords = new Argon2Passwords(hashing, { hash: argon2.hash, verify })
  const known = await passwords.hash('a password')
  assert.ok(await passwords.matches('a password', known))
  assert.ok(!(await passwords.matches('a password', undefined)))
  const [costs, decoyCosts] = compared.map(hash => hash.split('$').slice(0, 4))
  assert.deepEqual(decoyCosts, costs)
  assert.deepEqual(compared[1]?.length, compared[0]?.length)
  const functions = controlledArgon2()
  const full = new Argon2Passwords(boundsOf(1, 0), functions)
  const first = full.matches('a password', 'right')
  await assert.rejects(full.matches('a password', undefined), isOutage)
  functions.calls[0]?.end()
  assert.ok(await first)
})

test('few passwords are hashed at once, few wait, and further ones are rejected at once', async () => {
  const functions = controlledArgon2()
  const passwords = new Argon2Passwords(boundsOf(2, 3), functions)
  const accepted = Array.from({ length: 5 }, () => passwords.hash('a password'))
  await assert.rejects(passwords.hash('one too many'), isOutage)
  assert.equal(functions.calls.length, 2)
  for (let ended = 0; ended < 5; ended++) {
    functions.calls[ended]?.end()
    await settle()
    assert.equal(functions.calls.length, Math.min(5, ended + 3), 'the next begins when one ends')
  }
  await Promise.all(accepted)
  assert.equal(functions.most(), 2)
  const later = passwords.hash('there is room again')
  functions.calls.at(-1)?.end()
  await later
})

test('logins beyond the queue limit, which threads share, get 503 with Retry-After, and the others their usual answer', async () => {
  await using app = await startTestApp({ LOGIN_LIMIT_MAX: '0', THREADS: '2' }, expensive)
  await register(app.url)
  const { atOnce, mayWait } = few.logins
  const total = atOnce + mayWait + 30
  const answers = await Promise.all(Array.from({ length: total }, () => tryLogin(app.url)))
  const refused = answers.filter(({ status }) => status === 503)
  assert.ok(refused.length > 0)
  for (const { body, headers } of refused) {
    assert.deepEqual(JSON.parse(body), { error: 'Service temporarily unavailable. Try again later.' })
    assert.equal(headers.get('retry-after'), '1')
  }
  const served = answers.filter(({ status }) => status === 200).length
  assert.ok(served >= atOnce + mayWait)
  assert.equal(served + refused.length, total)
  assert.equal((await tryLogin(app.url)).status, 200)
})

test('new passwords and logins do not wait for each other', async () => {
  const functions = controlledArgon2()
  const passwords = new Argon2Passwords(boundsOf(1, 1), functions)
  const hashed = [passwords.hash('one'), passwords.hash('two')]
  await assert.rejects(passwords.hash('one too many'), isOutage)
  const login = passwords.matches('a password', 'right')
  functions.calls[1]?.end()
  assert.ok(await login)
  for (const index of [0, 2]) {
    functions.calls[index]?.end()
    await settle()
  }
  assert.deepEqual(await Promise.all(hashed), ['a hash', 'a hash'])
})
