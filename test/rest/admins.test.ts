import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { execute } from '../faults/execute.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { engineKinds, sqlite } from '../support/engines.ts'
import { tokenKeys } from '../support/keys.ts'
import { assertRefusal } from '../support/refusal.ts'
import {
  atOnce,
  bodyOf,
  createMember,
  impossibleIds,
  logIn,
  send,
  somebody,
  tally,
  type UserBody,
} from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'

for (const kind of engineKinds) {
  describe(`Roles on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() =>
      startTestAppOn(kind, { ACCESS_POLICY: 'enforced', RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }),
    )
    beforeEach(() => execute(app.database, "update users set role = 'member'"))

    const renew = async (email: string) => logIn(app, email, 'right password')
    const createAdmin = async () => {
      const { id, email } = await createMember(app)
      await app.engine.write('setRole', { id }, 'admin', `version ${Math.random()}`)
      return { id, email, token: await renew(email) }
    }
    const put = (id: number | string, role: unknown, token?: string) =>
      send(app, `PUT /users/${id}/role`, { role }, token)
    const roleOf = async (id: number, token: string) =>
      bodyOf<{ role: string }>(await send(app, `GET /users/${id}/role`, undefined, token))

    it('an admin reads and changes the role of a user, whose tokens and sockets end with a change and with nothing else', async () => {
      const [admin, user] = [await createAdmin(), await createMember(app)]
      assert.deepEqual(await roleOf(user.id, admin.token), { role: 'member' })
      const me = (token: string) => send(app, 'GET /users/me', undefined, token)
      assert.deepEqual(bodyOf(await put(user.id, 'member', admin.token)), { role: 'member' })
      assert.equal((await me(user.token)).status, 200, 'the role was the same')
      using socket = await SocketClient.connect(app, { token: user.token })
      assert.deepEqual(bodyOf(await put(user.id, 'admin', admin.token)), { role: 'admin' })
      assert.equal((await socket.closed).code, 4403)
      assertRefusal(await me(user.token), 401)
      const promoted = await renew(user.email)
      assert.deepEqual(await roleOf(user.id, promoted), { role: 'admin' })
      assert.deepEqual(bodyOf(await put(admin.id, 'member', promoted)), { role: 'member' })
      assertRefusal(await put(user.id, 'member', admin.token), 401)
      assertRefusal(await put(user.id, 'member', await renew(admin.email)), 403)
    })

    it('a wrong body gets 400, an absent user 404, and the last admin stays an admin with 409', async () => {
      const [admin, user] = [await createAdmin(), await createMember(app)]
      for (const role of ['root', 'Admin', '', null, 1, ['admin'], undefined])
        assertRefusal(await put(user.id, role, admin.token), 400, 'role must be one of member, admin')
      for (const id of ['987654321', ...impossibleIds]) {
        assertRefusal(await put(id, 'admin', admin.token), 404, 'User not found')
        assertRefusal(await send(app, `GET /users/${id}/role`, undefined, admin.token), 404, 'User not found')
      }
      assertRefusal(await put(admin.id, 'member', admin.token), 409, 'The last admin stays an admin')
      assert.deepEqual(await roleOf(admin.id, admin.token), { role: 'admin' }, 'and the token stays valid')
      await put(user.id, 'admin', admin.token)
      assert.equal((await put(admin.id, 'member', admin.token)).status, 200, 'there is another one')
      const last = await renew(user.email)
      assertRefusal(await put(user.id, 'member', last), 409, 'The last admin stays an admin')
    })

    it('of two admins who demote each other or themselves at the same time, at two instances, one stays', async () => {
      const env = { DATABASE_URL: app.database.location, TOKEN_KEYS: tokenKeys, ACCESS_POLICY: 'enforced' }
      await using other = kind.kind === 'postgres' ? await startTestApp(env) : undefined
      for (const whom of ['each other', 'each other', 'themselves', 'themselves']) {
        const admins = [await createAdmin(), await createAdmin()]
        const targets = whom === 'themselves' ? admins : admins.toReversed()
        const answers = await atOnce(2, index =>
          send(
            index === 0 ? app : (other ?? app),
            `PUT /users/${targets[index]?.id}/role`,
            { role: 'member' },
            admins[index]?.token,
          ),
        )
        const refused = whom === 'themselves' ? 409 : 401
        assert.deepEqual(tally(answers), { 200: 1, [refused]: 1 }, whom)
        const left = await app.engine.read(sql`select id from users where role = 'admin'`)
        assert.equal(left.length, 1)
        await app.engine.write('setRole', { id: Number(left[0]?.[0]) }, 'member', 'another version')
      }
    })
  })
}

/** Sign-up is closed from the start. The member and the admin are demo users, because no one can sign up. */
async function startClosed(kind: (typeof engineKinds)[number], policy: 'open' | 'enforced') {
  const app = await startTestAppOn(kind, { SIGN_UP: 'closed', ACCESS_POLICY: policy, DEMO_DATA: 'true' })
  const login = (email: string) => logIn(app, email, 'demo-password')
  return Object.assign(app, { admin: await login('ada@example.com'), member: await login('grace@example.com') })
}

describe('Closed sign-up', () => {
  for (const policy of ['open', 'enforced'] as const) {
    it(`lets only admins create users, by POST and by PUT, under the policy ${policy}`, async () => {
      await using app = await startClosed(sqlite, policy)
      const count = async () => bodyOf<UserBody[]>(await send(app, 'GET /users', undefined, app.admin)).length
      const before = await count()
      for (const line of ['POST /users', 'POST /api/users', 'PUT /users/77', 'PUT /api/users/9007199254740991']) {
        assertRefusal(await send(app, line, somebody()), 401, 'Authentication required')
        assertRefusal(await send(app, line, somebody(), app.member), 403, 'Not permitted')
      }
      assertRefusal(await send(app, 'POST /users', { name: '' }), 401)
      assertRefusal(await send(app, 'POST /users', { name: '' }, app.member), 403)
      assert.equal(await count(), before)
      bodyOf(await send(app, 'POST /users', somebody(), app.admin), 201)
      bodyOf(await send(app, 'PUT /users/77', somebody(), app.admin), 201)
      assert.equal(await count(), before + 2)
      // It does not change who may replace, change and delete users.
      assert.equal((await send(app, 'PUT /users/2', somebody(), app.member)).status, 200)
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
      const puts = atOnce(16, () => send(app, 'PUT /users/4', somebody()))
      const [answers, gone] = await Promise.all([puts, send(app, 'DELETE /users/4')])
      assert.equal(gone.status, 204)
      for (const { status } of answers) assert.ok(status === 200 || status === 401, String(status))
      assertRefusal(await send(app, 'GET /users/4'), 404)
    })
  }
})
