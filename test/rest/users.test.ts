import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { execute } from '../faults/execute.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefusal } from '../support/refusal.ts'
import { bodyOf, createUser, logIn, send, somebody, type UserBody } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { metricOf } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

const password = 'right password'
const avatar = 'https://example.com/a.png'

for (const kind of engineKinds) {
  describe(`Users on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind))

    /** Writes equal users with consecutive ids into the table, past the rules for input. */
    const insertUsers = (count: number, { name, email, avatar }: Omit<UserBody, 'id'>, firstId: number, on = app) =>
      execute(
        on.database,
        `insert into users (id, name, email, age, avatar, token_mark, created_at)
         with recursive numbers (number) as (select 0 union all select number + 1 from numbers where number < ${count - 1})
         select ${firstId} + number, '${name}', '${email}', 150, '${avatar}', 'm', '2026-01-01T00:00:00.000Z' from numbers`,
      )

    it('R-USR-1, R-USR-4: GET /users answers 200 with an array of all users sorted by id, created by POST or by PUT, which is empty if there are none', async () => {
      await using empty = await startTestAppOn(kind)
      const none = await send(empty, 'GET /users')
      assert.deepEqual([bodyOf(none), none.headers.get('link')], [[], undefined])
      const put = async (id: number) => bodyOf(await send(empty, `PUT /users/${id}`, somebody()), 201)
      const all = [await put(40), await createUser(empty), await put(7), await put(9007199254740991), await put(100)]
      all.push(await createUser(empty, { age: 30, avatar }))
      all.sort((one, other) => one.id - other.id)
      assert.deepEqual(bodyOf(await send(empty, 'GET /users')), all)
    })

    it('a page has as many users as its limit, however long their texts are, and at most 4.1 MB', async () => {
      const long = '€' // three bytes, the most of one character as JavaScript counts
      const [name, email, avatar] = [long.repeat(320), `${long.repeat(318)}@a`, `http://a/${long.repeat(679)}`]
      const first = Number.MAX_SAFE_INTEGER - 2_000
      await insertUsers(1_001, { name, email, avatar }, first)
      const largest = () => send(app, `GET /users?after=${first - 1}`)
      const [page, same] = await Promise.all([largest(), largest()])
      const size = Buffer.byteLength(page.body)
      assert.ok(size > 4_000_000 && size <= 4_100_000, `${size} bytes`)
      assert.ok(page.body === same.body && page.body === (await largest()).body)
      const head = await send(app, `HEAD /users?after=${first - 1}`)
      for (const { headers } of [page, head]) assert.equal(headers.get('content-length'), `${size}`)
      const users = Array.from({ length: 1_001 }, (_, at) => ({ id: first + at, name, email, age: 150, avatar }))
      assert.deepEqual(bodyOf(page), users.slice(0, 1_000))
      const unsent = () => metricOf(app, 'duet_unsent_bytes')
      const slow = await fetch(`${app.url}/users?after=${first - 1}`)
      await waitUntil(async () => (await unsent()) === size)
      await slow.body?.cancel()
      await waitUntil(async () => (await unsent()) === 0) // otherwise, after 63 such pages none would be sent any more
      assert.ok(!app.logs.some(({ level }) => Number(level) >= 50))
    })

    it('a page has each of its users once and in order, however many are read together', async () => {
      await using own = await startTestAppOn(kind)
      const looksLikeUser = '},{"id":7,"'
      const ann = { name: `Ann${looksLikeUser}`, email: 'ann@a', avatar: `http://a/${looksLikeUser}` }
      await insertUsers(302, ann, 1, own)
      await execute(own.database, `update users set name_key = 'ann', email_key = 'ann@a'`)
      // Of long ones, fewer are read together.
      const long = `http://a/${'€'.repeat(2_000)}`
      await execute(own.database, `update users set avatar = '${long}' where id between 90 and 180`)
      const ids = Array.from({ length: 302 }, (_, at) => at + 1)
      for (const [query, listed] of Object.entries({
        'sort=id': ids,
        'sort=-id': ids.toReversed(),
        'after=1': ids.slice(1),
        'offset=1': ids.slice(1),
        'q=ann&sort=-id&after=302': ids.slice(0, -1).toReversed(),
        'email=ann@a': ids,
      })) {
        for (const limit of [1, 100, 101, 200, 300, 301, 302, 1_000]) {
          const page = await send(own, `GET /users?${query}&limit=${limit}`)
          const expected = listed.slice(0, limit)
          const shown = bodyOf<UserBody[]>(page).map(({ id }) => id)
          assert.deepEqual(shown, expected, `${query}, ${limit}`)
          const next = /after=(\d+)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1]
          assert.equal(next, limit < listed.length ? `${expected.at(-1)}` : undefined, `${query}, ${limit}`)
        }
      }
      const reads = () => metricOf(own, 'duet_store_read_seconds_count')
      const before = await reads()
      await send(own, 'GET /users?q=ann')
      // The first part takes three reads, of which two find its users, and all four take six. The event feed reads, too.
      assert.ok((await reads()) - before < 13, 'the users of a page are not found again for each of its parts')
    })

    it('users of an older version whose texts have control characters are read, listed and changed', async () => {
      const bob = { id: 50, name: 'Bob\t\u001b[2J\u009b', email: 'bob@old', age: 150, avatar: 'http://a/\u0001\u007f' }
      await insertUsers(1, bob, bob.id)
      assert.deepEqual(bodyOf(await send(app, 'GET /users/50')), bob)
      assert.deepEqual(bodyOf(await send(app, 'GET /users?after=49&limit=1')), [bob])
      assert.deepEqual(bodyOf(await send(app, 'PATCH /users/50', { age: 50 })), { ...bob, age: 50 })
    })

    it('R-USR-15: GET /users/me with a bearer token returns the user of the token', async () => {
      const user = await createUser(app, { age: 41, password })
      await createUser(app)
      const token = await logIn(app, user.email, password)
      assert.deepEqual(bodyOf(await send(app, 'GET /users/me', undefined, token)), user)
      const changed = bodyOf(await send(app, `PATCH /users/${user.id}`, { name: 'Renamed' }))
      assert.deepEqual(bodyOf(await send(app, 'GET /users/me', undefined, token)), changed)
    })

    it('R-USR-1, R-USR-2, R-USR-5, R-USR-6, R-USR-7, R-API-7: each POST, also of the same values, answers 201 with the created user under a new id, only with the fields that are set, and its Location, where GET answers the same', async () => {
      const plain = somebody()
      const ids = new Set<number>()
      for (const values of [plain, plain, { ...plain, age: 0, avatar: 'http://example.com/?a=b#c' }]) {
        const response = await send(app, 'POST /users', values)
        const { id } = bodyOf(response, 201)
        ids.add(id)
        assert.ok(Number.isSafeInteger(id) && id > 0)
        assert.equal(response.body, JSON.stringify({ id, ...values }))
        assert.equal(response.headers.get('location'), `/users/${id}`)
        assert.equal((await send(app, `GET /users/${id}`)).body, response.body)
      }
      assert.equal(ids.size, 3)
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
      const steps = [{ name: 'New' }, { email: 'new@example.com' }, { age: 31 }, { avatar: 'http://b' }]
      let expected = user
      for (const step of [...steps, { age: 0, name: 'Two' }]) {
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
      const statuses = answers.map(({ status }) => status)
      assert.deepEqual(statuses, [201, 409, 401, 200, 400, 201, 404, 200, 200, 200, 200])
      for (const { body, headers } of answers) {
        assert.doesNotMatch(body + JSON.stringify([...headers]), /unforgettable|argon2|hash|mark|version/i)
      }
      assert.doesNotMatch(JSON.stringify(app.logs), /unforgettable|argon2/)
    })
  })
}
