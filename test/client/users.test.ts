import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { etag, passwordResets, type User, users } from '../../client/src/index.ts'
import { loggedSecret } from '../mail/mail-server.ts'
import { startTestApp } from '../support/app.ts'
import { createMember, logIn, send, somebody } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { connectTo } from './support.ts'

const changed = { kind: 'conflict', status: 412, message: 'The user has changed' }

describe('Users of the client', () => {
  const app = shared(() => startTestApp({ RATE_LIMIT_MAX: '0' }))

  it('are listed page by page by following the links, each once', async () => {
    using client = connectTo(app)
    const { create, list } = users(client.duet)
    const { id: before } = await create(somebody())
    const created: User[] = []
    while (created.length < 5) created.push(await create(somebody()))
    const [first] = created
    const rest = { after: before }
    client.requests.length = 0
    const found: User[] = []
    for await (const user of list({ ...rest, limit: 2 })) found.push(user)
    assert.deepEqual(found.slice(0, 5), created)
    assert.equal(new Set(found.map(({ id }) => id)).size, found.length)
    assert.ok(client.requests.length >= 3, 'at most two users came at once')

    const sizes: number[] = []
    for await (const page of list({ ...rest, limit: 4 }).pages()) sizes.push(page.length)
    assert.deepEqual([sizes[0], sizes.reduce((sum, size) => sum + size)], [4, found.length])
    const { items, more } = await list({ ...rest, limit: 1 }).first()
    assert.deepEqual([items, more], [[first], true])
    const stop = new AbortController()
    const left = list({ ...rest, limit: 1, signal: stop.signal }).pages()
    await left.next()
    stop.abort(new Error('no longer wanted'))
    await assert.rejects(left.next(), /no longer wanted/)

    await assert.rejects(list({ after: 0 }).first(), { kind: 'badInput' }, 'not the same as none')
    const unsorted = { sort: undefined } as object
    const pages = list({ ...rest, ...unsorted, limit: 2 })
    for (const [most, needed] of [
      [0, 0],
      [2, 1],
      [3, 2],
      [3, 2],
    ] as const) {
      client.requests.length = 0
      assert.deepEqual(await pages.toArray(most), created.slice(0, most))
      assert.equal(client.requests.length, needed, 'only the needed pages are read, each time anew')
    }
  })

  it('are found by e-mail, with any characters in it, or by the beginning of name or e-mail, page by page', async () => {
    using client = connectTo(app)
    const { create, list } = users(client.duet)
    const user = await create({ name: 'Ada', email: 'ada+engine&co@example.com' })
    assert.deepEqual(await list({ email: 'Ada+Engine&co@example.com' }).toArray(), [user])
    assert.deepEqual(await list({ email: 'nobody@example.com' }).first(), { items: [], more: false })
    const found: User[] = []
    for (const name of ['Qq & one', 'qQ & two', 'QQ & three']) found.push(await create({ ...somebody(), name }))
    assert.deepEqual(await list({ q: 'qq & ', sort: '-id', limit: 2 }).toArray(), found.toReversed())
    assert.deepEqual(await list({ q: 'qq & t', sort: 'id' }).toArray(), found.slice(1))
  })

  it('keep their ETag: an update is refused, and changes nothing, if another client has changed the user meanwhile', async () => {
    using client = connectTo(app)
    const { create, delete: remove, get, replace, update } = users(client.duet)
    const { id } = await create(somebody())
    const read = await get(id)
    assert.match(read[etag] ?? '', /^"/)
    const current = await update({ ...read }, { age: 40 }) // a copy has the ETag too
    assert.deepEqual([current.age, current[etag]], [40, undefined])
    assert.equal(client.requests.at(-1)?.body, '{"age":40}', 'only what changes')
    for (const user of [read, { ...read }]) await assert.rejects(update(user, { age: 41 }), changed)
    await assert.rejects(replace(read, somebody()), changed)
    await assert.rejects(remove(read), changed)
    assert.equal((await get(id)).age, 40)
    assert.equal((await update(id, { age: 42 })).age, 42, 'a write with an id is unconditional')
    assert.equal((await update(id, { age: null })).age, undefined)
    using bare = connectTo(app, { fetch: async (...call) => Response.json(await (await fetch(...call)).json()) })
    await users(bare.duet).update(await users(bare.duet).get(id), { age: 43 }) // behind a gateway without ETags
    assert.equal(bare.requests[1]?.headers['if-match'], undefined)
    assert.equal(etag, Symbol.for('duet.etag'), 'in each copy of the client')
    await remove(await get(id))
    await assert.rejects(get(id), { kind: 'notFound', status: 404, message: 'User not found' })
  })

  it('are replaced or created by id, and with onlyNew never replaced', async () => {
    using client = connectTo(app)
    const { get, replace } = users(client.duet)
    const input = somebody()
    assert.deepEqual(await replace(77_000, input, { onlyNew: true }), { id: 77_000, ...input })
    const exists = { kind: 'conflict', status: 412, message: 'The user exists already' }
    await assert.rejects(replace(77_000, somebody(), { onlyNew: true }), exists)
    const next = somebody()
    await replace(await get(77_000), next)
    assert.equal((await get(77_000)).name, next.name)
  })

  it('ask for a link and set a password with it, also with a session that is over, and the log does not tell the secret', async () => {
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
    const sent = ['PUT /password-resets/… undefined']
    assert.deepEqual(lossy.lines(), sent, 'a second request would tell that a link is invalid that was valid')
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
})
