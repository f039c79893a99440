import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Policy } from '../../src/core/access.ts'
import { startTestAppOn, type TestApp } from '../support/app.ts'
import { engineKinds, sqlite } from '../support/engines.ts'
import { tokenOf } from '../support/logins.ts'
import { assertRefusal } from '../support/refusal.ts'
import { bodyOf, send, somebody, type UserBody } from '../support/rest.ts'

const policies: readonly Policy[] = ['open', 'enforced']

/** Sign-up is closed from the start. The member and the admin are demo users, because no one can sign up. */
async function startClosed(kind: (typeof engineKinds)[number], policy: Policy) {
  const app = await startTestAppOn(kind, { SIGN_UP: 'closed', ACCESS_POLICY: policy, DEMO_DATA: 'true' })
  const login = (email: string) => tokenOf(app.url, email, 'demo-password')
  return Object.assign(app, { admin: await login('ada@example.com'), member: await login('grace@example.com') })
}

async function countUsers({ url }: Pick<TestApp, 'url'>, token: string): Promise<number> {
  return bodyOf<UserBody[]>(await send({ url }, 'GET /users', undefined, token)).length
}

describe('Closed sign-up', () => {
  for (const policy of policies) {
    it(`lets only admins create users, by POST and by PUT, under the policy ${policy}`, async () => {
      await using app = await startClosed(sqlite, policy)
      const before = await countUsers(app, app.admin)
      for (const line of ['POST /users', 'POST /api/users', 'PUT /users/77', 'PUT /api/users/9007199254740991']) {
        assertRefusal(await send(app, line, somebody()), 401, 'Authentication required')
        assertRefusal(await send(app, line, somebody(), app.member), 403, 'Not permitted')
      }
      assertRefusal(await send(app, 'POST /users', { name: '' }), 401)
      assertRefusal(await send(app, 'POST /users', { name: '' }, app.member), 403)
      assert.equal(await countUsers(app, app.admin), before)
      bodyOf(await send(app, 'POST /users', somebody(), app.admin), 201)
      bodyOf(await send(app, 'PUT /users/77', somebody(), app.admin), 201)
      assert.equal(await countUsers(app, app.admin), before + 2)
      // It does not change who may replace, change and delete users.
      assert.equal((await send(app, 'PUT /users/2', { ...somebody() }, app.member)).status, 200)
      assert.equal((await send(app, 'PATCH /users/2', { age: 9 }, app.member)).status, 200)
      assert.equal((await send(app, 'PUT /users/3', somebody())).status, policy === 'open' ? 200 : 401)
      assert.equal((await send(app, 'DELETE /users/2', undefined, app.member)).status, 204)
      assertRefusal(await send(app, 'PUT /users/2', somebody(), app.member), 401, 'Invalid or expired token')
    })
  }

  for (const kind of engineKinds) {
    it(`no PUT of an anonymous caller creates a user again that is deleted at the same moment, on ${kind.name}`, {
      skip: kind.skip,
    }, async () => {
      await using app = await startClosed(kind, 'open')
      const puts = Array.from({ length: 16 }, () => send(app, 'PUT /users/4', somebody()))
      const gone = send(app, 'DELETE /users/4')
      const answers = await Promise.all(puts)
      assert.equal((await gone).status, 204)
      for (const { status } of answers) assert.ok(status === 200 || status === 401, String(status))
      assertRefusal(await send(app, 'GET /users/4'), 404)
    })
  }
})
