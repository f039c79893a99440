import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { execute } from '../faults/execute.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { bodyOf, createUser, logIn, send, somebody, type UserBody } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { waitUntil } from '../support/wait.ts'

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
      all.push(await createUser(empty, { age: 30, avatar: 'https://example.com/a.png' }))
      all.sort((one, other) => one.id - other.id)
      assert.deepEqual(bodyOf(await send(empty, 'GET /users')), all)
      for (const { id, name, email } of all) {
        assert.deepEqual([typeof id, typeof name, typeof email], ['number', 'string', 'string'])
      }
      assert.deepEqual(bodyOf(await send(empty, 'GET /users?limit=5')), all.slice(0, 5))
    })

    it('a page has as many users as its limit, however long their texts are, and at most 8.2 MB', async () => {
      const long = '€' // three bytes, the most of one character as JavaScript counts
      const [name, email, avatar] = [long.repeat(320), `${long.repeat(318)}@a`, `http://a/${long.repeat(2_039)}`]
      const first = Number.MAX_SAFE_INTEGER - 2_000
      await insertUsers(1_001, { name, email, avatar }, first)
      const largest = () => send(app, `GET /users?after=${first - 1}`)
      const [page, same] = await Promise.all([largest(), largest()])
      const size = Buffer.byteLength(page.body)
      assert.ok(size > 8_000_000 && size <= 8_200_000, `${size} bytes`)
      assert.ok(page.body === same.body && page.body === (await largest()).body)
      const head = await send(app, `HEAD /users?after=${first - 1}`)
      for (const { headers } of [page, head]) assert.equal(headers.get('content-length'), `${size}`)
      const users = Array.from({ length: 1_001 }, (_, at) => ({ id: first + at, name, email, age: 150, avatar }))
      assert.deepEqual(bodyOf(page), users.slice(0, 1_000))
      const unsent = async () => Number(/^duet_unsent_bytes (\d+)$/m.exec((await send(app, 'GET /metrics')).body)?.[1])
      const slow = await fetch(`${app.url}/users?after=${first - 1}`)
      await waitUntil(async () => (await unsent()) === size)
      await slow.body?.cancel()
      await waitUntil(async () => (await unsent()) === 0) // otherwise, after 31 such pages none would be sent any more
      assert.deepEqual(
        app.logs.filter(({ level }) => Number(level) >= 50),
        [],
      )
    })

    it('a page has each of its users once and in order, however many are read together', async () => {
      await using own = await startTestAppOn(kind)
      const looksLikeUser = '},{"id":7,"'
      await insertUsers(
        302,
        { name: `Ann${looksLikeUser}`, email: 'ann@a', avatar: `http://a/${looksLikeUser}` },
        1,
        own,
      )
      await execute(own.database, `update users set name_key = 'ann', email_key = 'ann@a'`)
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
      const reads = async () => {
        const { body } = await send(own, 'GET /metrics')
        return Number(/^duet_store_read_seconds_count (\d+)/m.exec(body)?.[1])
      }
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

    it('R-USR-1, R-USR-5: GET /users/<user_id> answers 200 with that user, and only the fields that are set', async () => {
      const plain = await createUser(app)
      assert.deepEqual(Object.keys(plain).sort(), ['email', 'id', 'name'])
      assert.deepEqual(bodyOf(await send(app, `GET /users/${plain.id}`)), plain)
      const values = { ...somebody(), age: 0, avatar: 'http://example.com/?a=b#c' }
      const { id } = await createUser(app, values)
      assert.deepEqual(bodyOf(await send(app, `GET /users/${id}`)), { id, ...values })
    })

    it('R-USR-15: GET /users/me with a bearer token returns the user of the token', async () => {
      const user = await createUser(app, { age: 41, password: 'right password' })
      await createUser(app)
      const token = await logIn(app, user.email, 'right password')
      assert.deepEqual(bodyOf(await send(app, 'GET /users/me', undefined, token)), user)
      const changed = bodyOf(await send(app, `PATCH /users/${user.id}`, { name: 'Renamed' }))
      assert.deepEqual(bodyOf(await send(app, 'GET /users/me', undefined, token)), changed)
    })
  })
}
