import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passwordResets } from '../../client/src/index.ts'
import { loggedSecret } from '../mail/mail-server.ts'
import { startTestApp } from '../support/app.ts'
import { createMember, logIn, send } from '../support/rest.ts'
import { connectTo } from './support.ts'

test('the client asks for a link and sets a password with it, also with a session that is over, and does not tell the secret', async () => {
  await using app = await startTestApp()
  const { email, token } = await createMember(app)
  using client = connectTo(app)
  await client.duet.signIn({ email, password: 'right password' })
  await send(app, 'DELETE /tokens', undefined, token)
  const { request, set } = passwordResets(client.duet)
  await request(email)
  assert.equal(client.duet.session, undefined)
  const secret = await loggedSecret(app.logs, email)
  await assert.rejects(set(secret, 'short'), { kind: 'badInput', status: 400 })
  using lossy = connectTo(app, {
    fetch: async (...call) => Promise.reject(await fetch(...call)), // the answer is lost
  })
  await assert.rejects(passwordResets(lossy.duet).set('used/before?', 'a new password'), { kind: 'offline' })
  const once = ['PUT /password-resets/… undefined']
  assert.deepEqual(lossy.lines(), once, 'a second request would tell that a link is invalid that was valid')
  let asked = 0
  using refused = connectTo(app, { fetch: async () => Response.json({}, { status: ++asked <= 2 ? 401 : 500 }) })
  await assert.rejects(passwordResets(refused.duet).request(email), { kind: 'unauthenticated' })
  await client.duet.signIn({ email, password: 'right password' })
  await send(app, 'DELETE /tokens', undefined, await logIn(app, email, 'right password'))
  await set(secret, 'a new password')
  await assert.rejects(set(secret, 'a new password'), { kind: 'notFound', message: 'This link is no longer valid' })
  await client.duet.signIn({ email, password: 'a new password' })
  assert.ok(client.lines().includes('PUT /password-resets/… 204'))
  assert.ok(!JSON.stringify(client.requests).includes(secret))
})
