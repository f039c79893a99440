import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefusal } from '../support/refusal.ts'
import { bodyOf, createUser, logIn, send, somebody } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

const password = 'right password'
const avatar = 'https://example.com/a.png'

for (const kind of engineKinds) {
  describe(`Writing users on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind))

    it('R-USR-2, R-USR-6, R-USR-7: POST answers 201 with the created user under a new id, and its Location', async () => {
      const values = somebody()
      const response = await send(app, 'POST /users', values)
      const user = bodyOf(response, 201)
      assert.ok(Number.isSafeInteger(user.id) && user.id > 0)
      assert.equal(response.body, JSON.stringify({ id: user.id, ...values }))
      assert.equal(response.headers.get('location'), `/users/${user.id}`)
      assert.deepEqual(bodyOf(await send(app, `GET ${response.headers.get('location')}`)), user)
    })

    it('R-API-7: the same POST sent twice creates two users', async () => {
      const values = somebody()
      const [one, other] = [await createUser(app, values), await createUser(app, values)]
      assert.notEqual(one.id, other.id)
      assert.deepEqual(
        [one, other],
        [
          { id: one.id, ...values },
          { id: other.id, ...values },
        ],
      )
    })

    it('R-USR-3, R-USR-10: PUT replaces the whole user and answers 200, and fields that are not sent are removed', async () => {
      const { id } = await createUser(app, { age: 20, avatar })
      const values = { ...somebody(), age: 21 }
      const response = await send(app, `PUT /users/${id}`, values)
      assert.deepEqual(bodyOf(response), { id, ...values })
      assert.equal(response.headers.get('location'), undefined)
      const bare = somebody()
      assert.deepEqual(bodyOf(await send(app, `PUT /users/${id}`, bare)), { id, ...bare })
      assert.deepEqual(bodyOf(await send(app, `GET /users/${id}`)), { id, ...bare })
    })

    it('R-USR-11: PUT creates an absent user under the given id and answers 201 with Location', async () => {
      const values = { ...somebody(), age: 30, avatar }
      const response = await send(app, 'PUT /users/5000000000', values)
      assert.deepEqual(bodyOf(response, 201), { id: 5000000000, ...values })
      assert.equal(response.headers.get('location'), '/users/5000000000')
      assert.deepEqual(bodyOf(await send(app, 'GET /users/5000000000')), { id: 5000000000, ...values })
    })

    it('R-API-8: PUT sent twice leaves the state of PUT sent once', async () => {
      const values = { ...somebody(), age: 30 }
      const created = bodyOf(await send(app, 'PUT /users/6000', values), 201)
      const again = bodyOf(await send(app, 'PUT /users/6000', values))
      assert.deepEqual(again, created)
      assert.deepEqual(bodyOf(await send(app, 'GET /users/6000')), created)
    })

    it('PUT without a password keeps the password and the tokens', async () => {
      const { id, email } = await createUser(app, { password })
      const token = await logIn(app, email, password)
      const moved = somebody()
      bodyOf(await send(app, `PUT /users/${id}`, moved))
      assertRefusal(await send(app, 'POST /tokens', { email, password }), 401)
      assert.equal((await send(app, 'GET /users/me', undefined, token)).status, 200)
      await logIn(app, moved.email, password)
    })

    it('R-USR-12: PATCH answers 200 with the whole user, of which only the sent fields changed', async () => {
      const user = await createUser(app, { age: 30, avatar })
      const line = `PATCH /users/${user.id}`
      const steps = [
        { name: 'New' },
        { email: 'new@example.com' },
        { age: 31 },
        { avatar: 'http://b' },
        { age: 0, name: 'Two' },
      ]
      let expected = user
      for (const step of steps) {
        expected = { ...expected, ...step }
        assert.deepEqual(bodyOf(await send(app, line, step)), expected)
        assert.deepEqual(bodyOf(await send(app, `GET /users/${user.id}`)), expected)
      }
    })

    it('PATCH with null removes an age or an avatar, set or not; an empty object changes nothing', async () => {
      const { id, name, email } = await createUser(app, { age: 30, avatar })
      const line = `PATCH /users/${id}`
      assert.deepEqual(bodyOf(await send(app, line, {})), { id, name, email, age: 30, avatar })
      assert.deepEqual(bodyOf(await send(app, line, { age: null })), { id, name, email, avatar })
      assert.deepEqual(bodyOf(await send(app, line, { age: null, avatar: null })), { id, name, email })
      assert.deepEqual(bodyOf(await send(app, line, {})), { id, name, email })
    })

    it('PATCH without a password keeps the password, and PATCH never removes it', async () => {
      const { id, email } = await createUser(app, { password })
      const token = await logIn(app, email, password)
      bodyOf(await send(app, `PATCH /users/${id}`, { age: 3 }))
      assert.equal((await send(app, 'GET /users/me', undefined, token)).status, 200)
      assertRefusal(await send(app, `PATCH /users/${id}`, { password: null }, token), 400)
      await logIn(app, email, password)
    })

    it('concurrent patches of one user lose no change', async () => {
      const { id, email } = await createUser(app)
      const parts = [{ name: 'Patched' }, { age: 77 }, { avatar }]
      const answers = await Promise.all(parts.map(part => send(app, `PATCH /users/${id}`, part)))
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200],
      )
      assert.deepEqual(bodyOf(await send(app, `GET /users/${id}`)), { id, name: 'Patched', email, age: 77, avatar })
    })

    it('R-USR-13, R-USR-14, R-API-9, R-ERR-5: DELETE removes the user, and answers 204 without a body each time', async () => {
      const { id } = await createUser(app)
      const other = await createUser(app)
      for (let time = 0; time < 3; time++) {
        const { status, body, headers } = await send(app, `DELETE /users/${id}`)
        assert.deepEqual([status, body, headers.get('content-type')], [204, '', undefined])
        assertRefusal(await send(app, `GET /users/${id}`), 404, 'User not found')
      }
      assert.equal((await send(app, 'DELETE /users/123456789')).status, 204)
      assert.deepEqual(bodyOf(await send(app, `GET /users/${other.id}`)), other)
    })

    it('no answer and no log line contains a password or its hash', async () => {
      const secret = 'unforgettable-secret'
      const values = { ...somebody(), password: secret }
      const answers = [await send(app, 'POST /users', values), await send(app, 'POST /users', values)]
      const { id } = JSON.parse(answers[0]?.body ?? '') as { id: number }
      const token = await logIn(app, values.email, secret)
      answers.push(await send(app, `PUT /users/${id}`, { ...values, password: `${secret}-2` }))
      answers.push(await send(app, `PATCH /users/${id}`, { password: `${secret}-3` }, token))
      answers.push(await send(app, `PATCH /users/${id}`, { password: secret.repeat(10) }))
      answers.push(await send(app, 'PUT /users/8000', { ...somebody(), password: secret }))
      answers.push(await send(app, 'PATCH /users/8001', { password: secret }))
      for (const path of ['/users', `/users/${id}`, '/users?limit=1']) answers.push(await send(app, `GET ${path}`))
      answers.push(await send(app, 'GET /users/me', undefined, await logIn(app, values.email, `${secret}-3`)))
      assert.deepEqual(
        answers.map(({ status }) => status),
        [201, 409, 401, 200, 400, 201, 404, 200, 200, 200, 200],
      )
      for (const { body, headers } of answers) {
        assert.doesNotMatch(body + JSON.stringify([...headers]), /unforgettable|argon2|hash|mark|version/i)
      }
      assert.doesNotMatch(JSON.stringify(app.logs), /unforgettable|argon2/)
    })
  })

  it(`deleting a user deletes its posts and comments and keeps the ledger without an owner, and a new user with that id inherits nothing, on ${kind.name}`, {
    skip: kind.skip,
  }, async () => {
    await using app = await startTestAppOn(kind, { DEMO_DATA: 'true' })
    const count = async (statement: ReturnType<typeof sql>) => Number((await app.engine.read(statement))[0]?.[0])
    const of = async (id: number) => ({
      posts: await count(sql`select count(*) from posts where author_id = ${id}`),
      comments: await count(sql`select count(*) from comments where author_id = ${id}`),
      orders: await count(sql`select count(*) from orders where user_id = ${id}`),
      payments: await count(sql`select count(*) from payments where payer_id = ${id}`),
    })
    const ledger = async () => [
      await count(sql`select count(*) from orders`),
      await count(sql`select count(*) from payments`),
    ]
    const items = await count(sql`select count(*) from order_items`)
    const [known, before] = [await of(1), await ledger()]
    for (const [what, rows] of Object.entries(known)) assert.ok(rows > 0, `the demo data has no ${what} of user 1`)
    const others = await of(2)
    const token = await logIn(app, 'ada@example.com', 'demo-password')

    assert.equal((await send(app, 'DELETE /users/1')).status, 204)
    const none = { posts: 0, comments: 0, orders: 0, payments: 0 }
    assert.deepEqual(await of(1), none)
    assert.deepEqual(await ledger(), before)
    assert.equal(await count(sql`select count(*) from order_items`), items)
    assert.equal(await count(sql`select count(*) from orders where user_id is null`), known.orders)
    assert.equal(await count(sql`select count(*) from comments where post_id not in (select id from posts)`), 0)
    assert.equal((await of(2)).posts, others.posts)

    const values = { name: 'Ada', email: 'ada@example.com', password: 'demo-password' }
    bodyOf(await send(app, 'PUT /users/1', values), 201)
    assert.deepEqual(await of(1), none)
    assertRefusal(await send(app, 'GET /users/me', undefined, token), 401)
    const [row] = await app.engine.read(sql`select role, age from users where id = 1`)
    assert.deepEqual(row, ['member', null])
  })
}
