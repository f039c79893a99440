import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefusal } from '../support/refusal.ts'
import { bodyOf, createMember, logIn, send } from '../support/rest.ts'
import { secretIn, startMailServer } from './mail-server.ts'

for (const kind of engineKinds) {
  describe(`A forgotten password, on ${kind.name}`, { skip: kind.skip }, () => {
    it('is replaced by means of a mail, once, and all tokens of the user die', async () => {
      await using mail = await startMailServer()
      await using app = await startTestAppOn(kind, mail.env)
      const { email, token } = await createMember(app)
      assert.deepEqual(bodyOf(await send(app, 'POST /password-resets', { email: email.toUpperCase() }), 202), {})
      const { from, to, text } = await mail.received()
      assert.deepEqual([from, to], ['duet@example.com', [email]])
      const path = `/password-resets/${secretIn(text)}`
      assertRefusal(await send(app, `PUT ${path}`, { password: 'short' }), 400)
      assert.equal((await send(app, `PUT ${path}`, { password: 'a new password' })).status, 204)
      assertRefusal(await send(app, `PUT ${path}`, { password: 'a third one' }), 404, 'This link is no longer valid')
      assert.equal((await send(app, 'GET /users/me', undefined, token)).status, 401)
      await logIn(app, email, 'a new password')
    })
  })
}
