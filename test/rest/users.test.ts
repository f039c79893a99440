import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it, test } from 'node:test'
import { execute } from '../faults/execute.ts'
import { startTestApp, startTestAppOn, type TestApp } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefusal } from '../support/refusal.ts'
import { bodyOf, createUser, logIn, send, somebody, type UserBody } from '../support/rest.ts'

const links = (rels: Readonly<Record<string, string>>) =>
  Object.entries(rels)
    .map(([rel, address]) => `<${address}>; rel="${rel}"`)
    .join(', ')

/** Invalid ids: not a plain integer, or above the largest exact integer. */
const impossibleIds = [
  'abc',
  '0',
  '01',
  '-1',
  '+1',
  '1.5',
  '1.0',
  '1e0',
  '0x1',
  '1%20',
  '%201',
  '1%0A',
  '1%00',
  '%D9%A1',
  '9007199254740992',
  '9007199254740993',
  '99999999999999999999',
  '9'.repeat(1000),
]

for (const kind of engineKinds) {
  describe(`Users on ${kind.name}`, { skip: kind.skip }, () => {
    let app: TestApp
    beforeEach(async () => {
      app = await startTestAppOn(kind)
    })
    afterEach(() => app[Symbol.asyncDispose]())

    /** Writes equal users with consecutive ids into the table, past the rules for input. */
    const insertUsers = (count: number, { name, email, avatar }: Omit<UserBody, 'id'>, firstId = 1) =>
      execute(
        app.database,
        `insert into users (id, name, email, age, avatar, token_mark, created_at)
         with recursive numbers (number) as (select 0 union all select number + 1 from numbers where number < ${count - 1})
         select ${firstId} + number, '${name}', '${email}', 150, '${avatar}', 'm', '2026-01-01T00:00:00.000Z' from numbers`,
      )

    it('R-USR-4: GET /users answers 200 with an array, which is empty if there are no users', async () => {
      const response = await send(app, 'GET /users')
      assert.deepEqual(bodyOf(response), [])
      assert.equal(response.headers.get('link'), undefined)
    })

    it('R-USR-1, R-USR-4: GET /users returns all users sorted by id, created by POST or by PUT', async () => {
      const put = async (id: number) => bodyOf(await send(app, `PUT /users/${id}`, somebody()), 201)
      const all = [await put(40), await createUser(app), await put(7), await put(9007199254740991), await put(100)]
      all.push(await createUser(app, { age: 30, avatar: 'https://example.com/a.png' }))
      all.sort((one, other) => one.id - other.id)
      assert.deepEqual(bodyOf(await send(app, 'GET /users')), all)
      for (const { id, name, email } of all) {
        assert.deepEqual([typeof id, typeof name, typeof email], ['number', 'string', 'string'])
      }
      const five = all.slice(0, 5)
      assert.deepEqual(bodyOf(await send(app, 'GET /users?limit=5')), five)
      await Promise.all(all.map(({ id }) => send(app, `DELETE /users/${id}`)))
    })

    it('a list has limit users from offset on, and its Link header leads to the other pages', async () => {
      const all: UserBody[] = []
      for (let count = 0; count < 5; count++) all.push(await createUser(app))
      const page = async (query: string, expected: readonly UserBody[], rels: Readonly<Record<string, string>>) => {
        const response = await send(app, `GET /users${query}`)
        assert.deepEqual(bodyOf(response), expected, query)
        assert.equal(response.headers.get('link') ?? '', links(rels), query)
      }
      const first = '/users?limit=2&offset=0'
      const after = (index: number) => `/users?limit=2&after=${all[index]?.id}`
      await page('', all, {})
      await page('?limit=5', all, {})
      await page('?limit=1000&offset=0', all, {})
      await page('?limit=2', all.slice(0, 2), { next: after(1), first })
      await page('?offset=2&limit=2', all.slice(2, 4), { next: after(3), prev: first, first })
      await page('?limit=2&offset=4', all.slice(4), { prev: '/users?limit=2&offset=2', first })
      await page('?limit=2&offset=1', all.slice(1, 3), { next: after(2), prev: first, first })
      await page('?limit=2&offset=99', [], { prev: '/users?limit=2&offset=97', first })
      await page('?offset=3', all.slice(3), { prev: '/users?limit=1000&offset=0', first: '/users?limit=1000&offset=0' })
      await page('?other=1&limit=5', all, {})
    })

    it('following next from the first page returns every user once', async () => {
      const all: UserBody[] = []
      for (let count = 0; count < 5; count++) all.push(await createUser(app))
      const met: UserBody[] = []
      for (let path: string | undefined = '/users?limit=2'; path !== undefined; ) {
        const response = await send(app, `GET ${path}`)
        met.push(...bodyOf<UserBody[]>(response))
        path = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
      }
      assert.deepEqual(met, all)
    })

    it('a page has as many users as its limit, however long their texts are, and at most 8.2 MB', async () => {
      const long = '€' // three bytes, the most of one character as JavaScript counts
      const [name, email] = [long.repeat(320), `${long.repeat(318)}@a`]
      await insertUsers(
        1_001,
        { name, email, avatar: `http://a/${long.repeat(2_039)}` },
        Number.MAX_SAFE_INTEGER - 1_001,
      )
      const page = await send(app, 'GET /users')
      const size = Buffer.byteLength(page.body)
      assert.ok(size > 8_000_000 && size <= 8_200_000, `${size} bytes`)
      const rest = await send(app, 'GET /users?offset=1000')
      assert.deepEqual([bodyOf<UserBody[]>(page).length, bodyOf<UserBody[]>(rest).length], [1_000, 1])
    })

    it('users of an older version whose texts have control characters are read, listed and changed', async () => {
      const texts = { name: 'Bob\t\u001b[2J\u009b', avatar: 'http://a/\u0001\u007f' }
      await insertUsers(1, { ...texts, email: 'bob@example.com' })
      const bob = { id: 1, ...texts, email: 'bob@example.com', age: 150 }
      assert.deepEqual(bodyOf(await send(app, 'GET /users/1')), bob)
      assert.deepEqual(bodyOf(await send(app, 'GET /users')), [bob])
      assert.deepEqual(bodyOf(await send(app, 'PATCH /users/1', { age: 50 })), { ...bob, age: 50 })
    })

    it('a limit outside 1 to 1000, or an offset outside 0 to 100000, is refused with 400', async () => {
      for (const limit of ['0', '-1', '1001', '1.5', 'x', '', '1e2', '0x1', '%201', '99999999999999999999']) {
        const text = 'limit must be an integer from 1 to 1000'
        assertRefusal(await send(app, `GET /users?limit=${limit}`), 400, text)
      }
      for (const offset of ['-1', '1.5', 'x', '', '1e2', '100001', '99999999999999999999']) {
        const text = 'offset must be an integer from 0 to 100000'
        assertRefusal(await send(app, `GET /users?offset=${offset}`), 400, text)
      }
      assertRefusal(await send(app, 'GET /users?limit=1&limit=2'), 400)
      assertRefusal(await send(app, 'GET /users?offset=1&offset=1'), 400)
    })

    it('R-USR-1, R-USR-5: GET /users/<user_id> answers 200 with that user, and only the fields that are set', async () => {
      const plain = await createUser(app)
      assert.deepEqual(Object.keys(plain).sort(), ['email', 'id', 'name'])
      assert.deepEqual(bodyOf(await send(app, `GET /users/${plain.id}`)), plain)
      const values = { ...somebody(), age: 0, avatar: 'http://example.com/?a=b#c' }
      const { id } = await createUser(app, values)
      assert.deepEqual(bodyOf(await send(app, `GET /users/${id}`)), { id, ...values })
    })

    it('R-ERR-13: GET /users/<user_id> for an absent user answers 404 with User not found', async () => {
      const { status, body, headers } = await send(app, 'GET /users/123456789')
      assert.deepEqual({ status, body }, { status: 404, body: '{"error":"User not found"}' })
      assert.match(headers.get('content-type') ?? '', /^application\/json/)
    })

    it('an id that no user can have counts as absent: GET and PATCH answer 404, DELETE 204, PUT 400, and no user is affected', async () => {
      const { id } = bodyOf(await send(app, 'PUT /users/1', somebody()), 201)
      const largest = bodyOf(await send(app, 'PUT /users/9007199254740991', somebody()), 201)
      const before = bodyOf(await send(app, 'GET /users'))
      for (const bad of impossibleIds) {
        assertRefusal(await send(app, `GET /users/${bad}`), 404, 'User not found')
        assertRefusal(await send(app, `PATCH /users/${bad}`, { name: 'Mallory' }), 404, 'User not found')
        const deleted = await send(app, `DELETE /users/${bad}`)
        assert.deepEqual([deleted.status, deleted.body], [204, ''], bad)
        assertRefusal(await send(app, `PUT /users/${bad}`, somebody()), 400)
      }
      assert.deepEqual(bodyOf(await send(app, 'GET /users')), before)
      for (const each of [id, largest.id]) await send(app, `DELETE /users/${each}`)
    })

    it('/users/ is neither the list nor a user: 404 for every method', async () => {
      for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
        const body = method === 'PUT' || method === 'PATCH' ? somebody() : undefined
        assertRefusal(await send(app, `${method} /users/`, body), 404, 'Not found')
      }
    })

    it('R-USR-15: GET /users/me with a bearer token returns the user of the token', async () => {
      const user = await createUser(app, { age: 41, password: 'right password' })
      await createUser(app)
      const token = await logIn(app, user.email, 'right password')
      assert.deepEqual(bodyOf(await send(app, 'GET /users/me', undefined, token)), user)
      const changed = bodyOf(await send(app, `PATCH /users/${user.id}`, { name: 'Renamed' }))
      assert.deepEqual(bodyOf(await send(app, 'GET /users/me', undefined, token)), changed)
    })

    it('R-ERR-8: GET /users/me without a token answers 401 with a challenge', async () => {
      const response = await send(app, 'GET /users/me')
      assertRefusal(response, 401)
      assert.equal(response.headers.get('www-authenticate'), 'Bearer')
    })

    it('/users/me can only be read: any other method answers 405 with Allow', async () => {
      for (const prefix of ['', '/api']) {
        for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
          const response = await send(app, `${method} ${prefix}/users/me`, somebody())
          assertRefusal(response, 405, 'Method not allowed')
          assert.equal(response.headers.get('allow'), 'GET, HEAD, OPTIONS')
        }
      }
    })

    it('a wrong method on /users and on a user answers 405 with exactly the allowed methods', async () => {
      for (const method of ['PUT', 'PATCH', 'DELETE']) {
        assert.equal((await send(app, `${method} /users`)).headers.get('allow'), 'GET, HEAD, POST, OPTIONS')
      }
      const response = await send(app, 'POST /users/1', somebody())
      assertRefusal(response, 405)
      assert.equal(response.headers.get('allow'), 'GET, HEAD, PUT, PATCH, DELETE, OPTIONS')
    })

    it('HEAD answers with the headers of GET and without a body', async () => {
      const { id, email } = await createUser(app, { password: 'right password' })
      const token = await logIn(app, email, 'right password')
      for (const path of [
        '/users',
        '/users?limit=1',
        `/users/${id}`,
        '/users/me',
        '/users/123456789',
        '/users?limit=0',
      ]) {
        const get = await send(app, `GET ${path}`, undefined, token)
        const head = await send(app, `HEAD ${path}`, undefined, token)
        assert.deepEqual([head.status, head.body], [get.status, ''], path)
        for (const name of ['content-type', 'content-length', 'link']) {
          assert.equal(head.headers.get(name), get.headers.get(name), path)
        }
      }
    })

    it('both prefixes serve the same users, and all their links are without /api', async () => {
      await createUser(app)
      const response = await send(app, 'POST /api/users', somebody())
      const user = bodyOf(response, 201)
      assert.equal(response.headers.get('location'), `/users/${user.id}`)
      for (const prefix of ['', '/api']) {
        assert.deepEqual(bodyOf(await send(app, `GET ${prefix}/users/${user.id}`)), user)
        const page = await send(app, `GET ${prefix}/users?limit=1`)
        assert.match(page.headers.get('link') ?? '', /^<\/users\?limit=1&after=\d+>; rel="next", /)
      }
      const put = await send(app, `PUT /api/users/${user.id + 1000}`, somebody())
      assert.equal(put.headers.get('location'), `/users/${bodyOf(put, 201).id}`)
      assert.equal((await send(app, `PATCH /api/users/${user.id}`, { age: 3 })).status, 200)
      assert.deepEqual(bodyOf(await send(app, `GET /users/${user.id}`)), { ...user, age: 3 })
      assert.equal((await send(app, `DELETE /api/users/${user.id}`)).status, 204)
      assertRefusal(await send(app, `GET /users/${user.id}`), 404)
    })
  })
}

test('LINK_PREFIX is the prefix of every link in an answer, and does not change the routes', async () => {
  await using app = await startTestApp({ LINK_PREFIX: 'https://shop.example/v1' })
  const [created, put] = [await send(app, 'POST /users', somebody()), await send(app, 'PUT /users/5', somebody())]
  assert.equal(created.headers.get('location'), 'https://shop.example/v1/users/1')
  assert.equal(put.headers.get('location'), 'https://shop.example/v1/users/5')
  const { headers } = await send(app, 'GET /api/users?limit=1')
  const page = 'https://shop.example/v1/users?limit=1'
  assert.equal(headers.get('link'), links({ next: `${page}&after=1`, first: `${page}&offset=0` }))
  assertRefusal(await send(app, 'GET /v1/users'), 404)
})
