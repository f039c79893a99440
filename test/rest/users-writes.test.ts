import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
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

    it('R-USR-2, R-USR-6, R-USR-7, R-API-7: each POST, also of the same values, answers 201 with the created user under a new id, and its Location', async () => {
      const values = somebody()
      const responses = [await send(app, 'POST /users', values), await send(app, 'POST /users', values)]
      const ids = responses.map(response => bodyOf(response, 201).id)
      assert.equal(new Set(ids).size, 2)
      for (const [at, { body, headers }] of responses.entries()) {
        const id = ids[at] ?? 0
        assert.ok(Number.isSafeInteger(id) && id > 0)
        assert.equal(body, JSON.stringify({ id, ...values }))
        assert.equal(headers.get('location'), `/users/${id}`)
        assert.equal((await send(app, `GET /users/${id}`)).body, body)
      }
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

    it('R-USR-11, R-API-8: PUT creates an absent user under the given id and answers 201 with Location, and sent twice leaves the same state', async () => {
      const values = { ...somebody(), age: 30, avatar }
      const response = await send(app, 'PUT /users/5000000000', values)
      assert.deepEqual(bodyOf(response, 201), { id: 5000000000, ...values })
      assert.equal(response.headers.get('location'), '/users/5000000000')
      assert.deepEqual(bodyOf(await send(app, 'PUT /users/5000000000', values)), { id: 5000000000, ...values })
      assert.deepEqual(bodyOf(await send(app, 'GET /users/5000000000')), { id: 5000000000, ...values })
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

    it('PUT and PATCH without a password keep the password and the tokens, and PATCH never removes it', async () => {
      const { id, email } = await createUser(app, { password })
      const token = await logIn(app, email, password)
      const moved = somebody()
      bodyOf(await send(app, `PUT /users/${id}`, moved))
      bodyOf(await send(app, `PATCH /users/${id}`, { age: 3 }))
      assertRefusal(await send(app, 'POST /tokens', { email, password }), 401)
      assert.equal((await send(app, 'GET /users/me', undefined, token)).status, 200)
      assertRefusal(await send(app, `PATCH /users/${id}`, { password: null }, token), 400)
      await logIn(app, moved.email, password)
    })

    it('concurrent patches of one user lose no change', async () => {
      const { id, email } = await createUser(app)
      const parts = [{ name: 'Patched' }, { age: 77 }, { avatar }]
      await Promise.all(parts.map(async part => bodyOf(await send(app, `PATCH /users/${id}`, part))))
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
}
