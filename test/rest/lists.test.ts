import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { execute } from '../faults/execute.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import type { RawResponse, Served } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import {
  bodyOf,
  createMember,
  createOrder,
  createUser,
  impossibleIds,
  newKey,
  type OrderBody,
  type PaymentBody,
  pay,
  payOrder,
  send,
  type UserBody,
} from '../support/rest.ts'
import { shared } from '../support/shared.ts'

const idsOf = (response: RawResponse) => bodyOf<readonly { id: number }[]>(response).map(({ id }) => id)
const linkOf = ({ headers }: RawResponse, rel: string) =>
  new RegExp(`<([^>]+)>; rel="${rel}"`).exec(headers.get('link') ?? '')?.[1]

for (const kind of engineKinds) {
  describe(`Lists on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind))

    const get = (path: string) => send(app, `GET ${path}`)

    /** The ids of all pages. `between` is called between two pages. */
    async function walk(path: string, on: Served = app, between?: () => Promise<unknown>): Promise<readonly number[]> {
      const ids: number[] = []
      for (let next: string | undefined = path; next !== undefined; ) {
        const response = await send(on, `GET ${next}`)
        ids.push(...idsOf(response))
        assert.ok(ids.length < 100, 'the pages do not end')
        next = linkOf(response, 'next')
        await between?.()
      }
      return ids
    }

    it('a list has limit items from offset on, by ascending or descending ids, and its Link header leads to the other pages', async () => {
      await using empty = await startTestAppOn(kind)
      const user = await createUser(empty)
      const lists = {
        '/users': () => createUser(empty),
        [`/users/${user.id}/orders`]: () => createOrder(empty, user.id),
        '/orders': () => createOrder(empty, user.id),
        '/payments': async () => bodyOf<PaymentBody>(await pay(empty, newKey()), 201),
      }
      for (const [path, create] of Object.entries(lists)) {
        const all = bodyOf<{ id: number }[]>(await send(empty, `GET ${path}`))
        while (all.length < 5) all.push(await create())
        const page = async (query: string, expected: readonly unknown[], rels: Readonly<Record<string, string>>) => {
          const response = await send(empty, `GET ${path}${query}`)
          assert.deepEqual(bodyOf<unknown>(response), expected, query)
          const links = Object.entries(rels).map(([rel, address]) => `<${path}?limit=${address}>; rel="${rel}"`)
          assert.equal(response.headers.get('link') ?? '', links.join(', '), query)
        }
        const after = (index: number) => `2&after=${all[index]?.id}`
        const first = '2&offset=0'
        for (const query of ['', '?limit=5', '?limit=1000&offset=0', '?other=1&limit=5']) await page(query, all, {})
        await page('?limit=2', all.slice(0, 2), { next: after(1), first })
        await page('?offset=2&limit=2', all.slice(2, 4), { next: after(3), prev: first, first })
        await page('?limit=2&offset=4', all.slice(4), { prev: '2&offset=2', first })
        await page('?limit=2&offset=1', all.slice(1, 3), { next: after(2), prev: first, first })
        await page('?limit=2&offset=100000', [], { prev: '2&offset=99998', first })
        await page(`?limit=${after(3)}`, all.slice(4), { first })
        await page('?offset=3', all.slice(3), { prev: '1000&offset=0', first: '1000&offset=0' })
        const down = await walk(`${path}?sort=-id&limit=2`, empty)
        assert.deepEqual(down, all.map(({ id }) => id).reverse())
        const from = await send(empty, `GET ${path}?sort=-id&limit=2&after=${down[0]}`)
        assert.deepEqual(idsOf(from), down.slice(1, 3))
        assert.equal(linkOf(from, 'next'), `${path}?sort=-id&limit=2&after=${down[2]}`)
        assert.equal(linkOf(from, 'first'), `${path}?sort=-id&limit=2&offset=0`)
        assert.deepEqual(idsOf(await send(empty, `GET ${path}?sort=-id&limit=2&offset=1`)), down.slice(1, 3))
        assert.deepEqual(await walk(`${path}?sort=id&limit=2`, empty), down.toReversed())
      }
    })

    it('following next lists each order once, also while others are cancelled and created', async () => {
      const user = await createUser(app)
      const order = async () => (await createOrder(app, user.id)).id
      const [gone, ...kept] = [await order(), await order(), await order(), await order(), await order()]
      await createOrder(app, (await createUser(app)).id)
      let created: number | undefined
      const ids = await walk(`/users/${user.id}/orders?limit=2`, app, async () => {
        await send(app, `DELETE /orders/${gone}`)
        created ??= await order()
      })
      assert.deepEqual(ids, [gone, ...kept, created])
      assert.deepEqual(idsOf(await get(`/users/${user.id}/orders?after=${gone}`)), [...kept, created])
      assert.deepEqual(idsOf(await get(`/users/${user.id}/orders?after=${created}`)), [])
    })

    it('parameters that are wrong, sent twice, or cannot be used together are refused with 400, also for an absent user', async () => {
      const orders = [`/users/${(await createUser(app)).id}/orders`, '/users/4711/orders', '/orders']
      const all = [...orders, '/users', '/payments']
      const users = ['/users']
      const statuses = ['', 'paid', 'SHIPPED', 'shipped,pending_payment', 'shipped&status=shipped', '__proto__']
      for (const [paths, name, values, error] of [
        [all, 'after', [...impossibleIds, '', '1&after=2'], 'after must be an integer from 1 to 9007199254740991'],
        [all, 'after', ['1&offset=0'], 'after and offset cannot be used together'],
        [all, 'limit', ['0', '1001', 'x', '', '1&limit=1', '0&after=1'], 'limit must be an integer from 1 to 1000'],
        [all, 'sort', ['', 'name', 'ID', '--id', 'id&sort=id', '+id'], 'sort must be one of id, -id'],
        [all, 'offset', ['-1', '1.5', '100001', '1&offset=1'], 'offset must be an integer from 0 to 100000'],
        [orders, 'status', statuses, 'status must be one of pending_payment, shipped'],
        [users, 'q', ['', 'a', '%F0%9F%98%80', 'a'.repeat(101)], 'q must be 2 to 100 characters long'],
        [users, 'q', ['a%00'], 'q contains characters that are not allowed'],
        [users, 'q', ['ab&q=cd'], 'q must be a string'],
        [users, 'q', ['ab&email=a@b'], 'q and email cannot be used together'],
        [users, 'q', ['ab&offset=1'], 'q and offset cannot be used together'],
        [users, 'email', ['ann', 'ann+tag@example.com'], 'email must be an e-mail address'],
        [users, 'email', [''], 'email must not be empty'],
        [users, 'email', [`${'a'.repeat(320)}@`], 'email must be at most 320 characters long'],
        [users, 'email', ['%00@'], 'email contains characters that are not allowed'],
        [users, 'email', ['a@b&email=a@b'], 'email must be a string'],
      ] as const) {
        for (const path of paths)
          for (const value of values) assertRefusal(await get(`${path}?${name}=${value}`), 400, error)
      }
      for (const q of ['ab', 'a%F0%9F%98%80', '%F0%9F%98%80'.repeat(100)])
        assert.equal((await get(`/users?q=${q}`)).status, 200)
    })

    it('email finds the users with this e-mail, ignoring case, and no others', async () => {
      const shared = ['Zoë+Ünal@Example.com', 'zoë+ünal@example.COM', 'ZOË+ÜNAL@EXAMPLE.COM']
      const ids: number[] = []
      for (const email of shared) ids.push((await createUser(app, { email })).id)
      for (const email of ['zoe+unal@example.com', 'zoë+ünal@example.com.evil.example'])
        await createUser(app, { email })
      const path = (email: string) => `/users?email=${encodeURIComponent(email)}`
      for (const email of [...shared, 'zoË+Ünal@example.com'])
        assert.deepEqual(idsOf(await get(path(email))), ids, email)
      assert.deepEqual(idsOf(await get(path('zoë%@example.com'))), [])
      const filter = 'email=zo%C3%AB%2B%C3%BCnal%40example.com'
      const page = await get(`/users?${filter}&limit=1&offset=1`)
      assert.deepEqual(idsOf(page), [ids[1]])
      assert.equal(linkOf(page, 'next'), `/users?${filter}&limit=1&after=${ids[1]}`)
      assert.equal(linkOf(page, 'prev'), `/users?${filter}&limit=1&offset=0`)
      assert.deepEqual(await walk(`/users?${filter}&limit=2`), ids)
      assert.deepEqual(idsOf(await get(`/users?${filter}&after=${ids[0]}`)), ids.slice(1))
    })

    it('email finds a user by the current e-mail, also after PUT and PATCH, until it is deleted', async () => {
      const user = await createUser(app, { email: 'One@example.com' })
      const found = async (former: string, email: string) => {
        for (const [text, ids] of [[former, []] as const, [email, [user.id]] as const])
          assert.deepEqual(idsOf(await get(`/users?email=${text}`)), ids, text)
      }
      await send(app, `PATCH /users/${user.id}`, { email: 'Two@example.com' })
      await found('one@example.com', 'two@example.com')
      await send(app, `PUT /users/${user.id}`, { name: 'N', email: 'Three@example.com' })
      await send(app, `PATCH /users/${user.id}`, { age: 3 })
      await found('two@example.com', 'THREE@example.com')
      await send(app, `DELETE /users/${user.id}`)
      assert.deepEqual(idsOf(await get('/users?email=three@example.com')), [])
    })

    it('q finds the users whose name or e-mail begins with a text, ignoring case, each once, and pages go on', async () => {
      const mark = `q${Math.random().toString(36).slice(2)}`
      const add = async (name: string, email = 'searched@example.com') => (await createUser(app, { name, email })).id
      const ids = [
        await add(`${mark}`),
        await add('Somebody', `${mark.toUpperCase()}@example.com`),
        await add(`${mark}Élodie Σίσυφος`, `${mark}@example.com`),
        await add(`${mark}\u{10ffff}\u{10ffff}`),
        await add(`${mark.toUpperCase()}ÉLODIE ΣΊΣΥΦΟΣ%`),
      ]
      await add(`x${mark}`, `x${mark}@example.com`)
      const find = async (text: string, more = '') => idsOf(await get(`/users?q=${encodeURIComponent(text)}${more}`))
      assert.deepEqual(await find(mark), ids)
      assert.deepEqual(await find(mark.toUpperCase(), '&sort=-id'), ids.toReversed())
      assert.deepEqual(await find(`${mark}É`), [ids[2], ids[4]])
      assert.deepEqual(await find(`${mark}élodie σ`), [ids[2], ids[4]])
      assert.deepEqual(await find(`${mark}ÉLODIE ΣΊΣΥΦΟΣ`), [ids[2], ids[4]])
      for (const text of [`${mark}%`, `${mark.slice(0, -1)}_`, `%${mark}`, `${mark}*`, `${mark} `])
        assert.deepEqual(await find(text), [], text)
      const filter = `q=${mark}&sort=-id&limit=2`
      const page = await get(`/users?${filter}`)
      assert.equal(linkOf(page, 'next'), `/users?${filter}&after=${ids[3]}`)
      assert.equal(linkOf(page, 'first'), `/users?${filter}&offset=0`)
      assert.deepEqual(bodyOf<UserBody[]>(page)[0], bodyOf(await get(`/users/${ids[4]}`)))
      assert.deepEqual(await walk(`/users?${filter}`), ids.toReversed())
      assert.deepEqual(await walk(`/users?q=${mark}&limit=2&offset=0`), ids)
      assert.deepEqual(await find(mark, `&after=${ids[1]}&limit=2`), ids.slice(2, 4))
      await send(app, `PATCH /users/${ids[0]}`, { name: 'Other' })
      await send(app, `PUT /users/${ids[1]}`, { name: `${mark}!`, email: 'other@example.com' })
      assert.deepEqual(await find(mark, '&limit=1'), [ids[1]])
      await send(app, `PATCH /users/${ids[4]}`, { name: `${mark}ΣΊΣΥΦΟΣ` })
      assert.deepEqual(await find(`${mark}σίσυφος`), [ids[4]])
    })

    it('q of many users gives full pages, wherever among the others they are', async () => {
      await using own = await startTestAppOn(kind)
      // Only the last 3,000 of 6,000 users, and one before, begin with b.
      await execute(
        own.database,
        `insert into users (id, name, email, email_key, name_key, token_mark, created_at)
         with recursive n(i) as (select 1 union all select i + 1 from n where i < 6000)
         select i, 'N', 'E', case when i = 5 then 'bb' else 'e' end, case when i > 3000 then 'bb' else 'n' end,
                'mark', '2026-01-01T00:00:00.000Z' from n`,
      )
      const find = async (query: string) => idsOf(await send(own, `GET /users?q=BB&${query}`))
      assert.deepEqual(await find('limit=3'), [5, 3001, 3002])
      assert.deepEqual(await find('limit=3&after=3002'), [3003, 3004, 3005])
      assert.deepEqual(await find('limit=2&after=5999'), [6000])
      assert.deepEqual(await find('limit=2&sort=-id'), [6000, 5999])
      assert.deepEqual(await find('limit=3&sort=-id&after=3003'), [3002, 3001, 5])
      assert.deepEqual(await find('after=6000'), [])
      assert.equal((await find('')).length, 1000)
    })

    it('status lists only the orders with this status, in pages too, whose offsets count no order of another user', async () => {
      const user = await createUser(app)
      const other = await createOrder(app, (await createUser(app)).id)
      const [shipped, pending]: [number[], number[]] = [[], []]
      for (const ids of [shipped, pending, shipped, pending, shipped, pending])
        ids.push((await createOrder(app, user.id)).id)
      for (const id of [other.id, ...shipped]) await payOrder(app, id)
      const path = `/users/${user.id}/orders?status=`
      assert.deepEqual(idsOf(await get(`${path}shipped`)), shipped)
      assert.deepEqual(idsOf(await get(`${path}pending_payment`)), pending)
      const page = await get(`${path}shipped&limit=1&offset=1`)
      assert.deepEqual(idsOf(page), [shipped[1]])
      assert.equal(linkOf(page, 'next'), `${path}shipped&limit=1&after=${shipped[1]}`)
      assert.deepEqual(await walk(`${path}pending_payment&limit=1`), pending)
      assert.deepEqual(idsOf(await get(`${path}shipped&offset=3`)), [])
      assert.deepEqual(idsOf(await get(`${path}shipped&offset=2&sort=-id`)), [shipped[0]])
      assertRefusal(await get('/users/4711/orders?status=shipped'), 404, 'User not found')
    })

    it('GET /orders lists the orders of all users like single ones, also those of deleted users, and by status', async () => {
      const [user, gone] = [await createUser(app), await createUser(app)]
      const { id: start } = await createOrder(app, user.id)
      const orders = [await createOrder(app, user.id), await createOrder(app, gone.id), await createOrder(app, user.id)]
      const [first, second, third] = orders.map(({ id }) => id) as [number, number, number]
      await payOrder(app, second)
      const etag = async () => (await get(`/orders/${second}`)).headers.get('etag')
      const before = await etag()
      await send(app, `DELETE /users/${gone.id}`)
      assert.notEqual(await etag(), before, 'the ETag belongs to another representation')
      const all = bodyOf<OrderBody[]>(await get(`/orders?sort=-id&limit=3`))
      const users = all.map(({ user_id }) => user_id)
      assert.deepEqual(users, [user.id, null, user.id])
      for (const order of all) assert.deepEqual(bodyOf<OrderBody>(await get(`/orders/${order.id}`)), order)
      assert.deepEqual(idsOf(await get(`/orders?status=pending_payment&after=${start}`)), [first, third])
      const shipped = await get('/orders?status=shipped&sort=-id&limit=1')
      assert.deepEqual(idsOf(shipped), [second])
      assert.deepEqual(await walk(`/orders?status=pending_payment&after=${start}&limit=1`), [first, third])
    })

    it('GET /payments lists all payments like single ones, with the orders that they paid', async () => {
      const order = await createOrder(app, (await createUser(app)).id)
      await payOrder(app, order.id)
      await pay(app, newKey())
      const newest = bodyOf<PaymentBody[]>(await get('/payments?sort=-id&limit=2'))
      const orders = newest.map(({ order_id }) => order_id)
      assert.deepEqual(orders, [null, order.id])
      for (const payment of newest) assert.deepEqual(bodyOf<PaymentBody>(await get(`/payments/${payment.id}`)), payment)
    })
  })

  describe(`Lists under the enforced policy on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, { ACCESS_POLICY: 'enforced' }))

    it('callers without access get 401 or 403, whatever the parameters are', async () => {
      const [owner, other] = [await createMember(app), await createMember(app)]
      const own = `GET /users/${owner.id}/orders`
      for (const query of ['email=x', 'q=x', 'q=ab', `email=${owner.email}`, 'after=0', 'after=1&offset=1']) {
        assertRefusal(await send(app, `GET /users?${query}`), 401)
        assertRefusal(await send(app, `GET /users?${query}`, undefined, owner.token), 403)
      }
      for (const query of ['status=x', 'status=shipped', 'after=0']) {
        assertRefusal(await send(app, `${own}?${query}`), 401)
        assertRefusal(await send(app, `${own}?${query}`, undefined, other.token), 403)
      }
      assert.equal((await send(app, `${own}?status=shipped`, undefined, owner.token)).status, 200)
      await execute(app.database, `update users set role = 'admin' where id = ${other.id}`)
      const found = await send(app, `GET /users?email=${owner.email.toUpperCase()}`, undefined, other.token)
      assert.deepEqual(idsOf(found), [owner.id])
    })

    it('a user lists the own payments only, and an admin all of them', async () => {
      const [ann, bob, admin] = [await createMember(app), await createMember(app), await createMember(app)]
      await execute(app.database, `update users set role = 'admin' where id = ${admin.id}`)
      const ids: number[] = []
      for (const { token } of [ann, bob, ann, admin, ann])
        ids.push(bodyOf<PaymentBody>(await pay(app, newKey(), { amount: 5 }, token), 201).id)
      const list = async (token: string, query: string) =>
        idsOf(await send(app, `GET /payments?${query}`, undefined, token))
      assert.deepEqual(await list(ann.token, 'sort=-id'), [ids[4], ids[2], ids[0]])
      assert.deepEqual(await list(ann.token, `sort=-id&after=${ids[4]}&limit=1`), [ids[2]])
      assert.deepEqual(await list(ann.token, 'offset=1'), [ids[2], ids[4]])
      assert.deepEqual(await list(bob.token, ''), [ids[1]])
      assert.deepEqual(await list(admin.token, 'sort=-id'), ids.toReversed())
    })
  })
}
