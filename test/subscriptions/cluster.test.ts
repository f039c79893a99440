import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { Wire } from '../faults/wire.ts'
import { startTestApp } from '../support/app.ts'
import { postgres, type TestDatabase } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { tokenKeys } from '../support/keys.ts'
import { createMember, send } from '../support/rest.ts'
import { type Operation, SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { idsIn, newPost } from './posts.ts'

type App = Awaited<ReturnType<typeof startTestApp>>

const posts = 'subscription { postAdded { id } }'

function settingsFor(url: string) {
  return { DATABASE_URL: url, TOKEN_KEYS: tokenKeys, RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0', DATABASE_POOL_MAX: '4' }
}

/** Waits until all subscribers have received one post, and removes the events up to it. */
async function discardEventsSoFar(operations: readonly Operation[], writer: SocketClient): Promise<void> {
  const mark = await newPost(writer, 'from here on')
  for (const each of operations) await each.until(() => idsIn(each).includes(mark))
  for (const each of operations) each.events.length = 0
}

/** The ids of the latest posts, in the order in which all subscribers must receive them. */
async function orderIn(url: string, count: number): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(
    `select post_id from outbox where kind = 'post-added' order by position desc, id desc limit ${count}`,
  )
  await client.end()
  return rows.map(({ post_id }) => String(post_id)).reverse()
}

describe('Two instances on one PostgreSQL database', { skip: postgres.skip }, () => {
  let database: TestDatabase
  let one: App
  let other: App
  let token: string
  before(async () => {
    database = await postgres.create()
    one = await startTestApp(settingsFor(database.location))
    other = await startTestApp(settingsFor(database.location))
    token = (await createMember(one)).token
  })
  after(async () => {
    await one[Symbol.asyncDispose]()
    await other[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })

  it('F26: subscribers on both get every post once, in the same order, from both instances', async () => {
    const count = inForm(120, 300)
    using writerA = await SocketClient.connect(one, { token })
    using writerB = await SocketClient.connect(other, { token })
    using readerA = await SocketClient.connect(one)
    using readerB = await SocketClient.connect(other)
    const subscriptions: Operation[] = []
    for (const [reader, writer] of [
      [readerA, writerA],
      [readerB, writerB],
    ] as const) {
      for (let n = 0; n < 2; n++) subscriptions.push(await reader.begin(posts).listening(text => newPost(writer, text)))
    }
    await discardEventsSoFar(subscriptions, writerB)
    const hands = Array.from({ length: 12 }, async (_, hand) => {
      for (let n = 0; n < count / 12; n++) await newPost(hand % 2 === 0 ? writerA : writerB, `${hand} ${n}`)
    })
    await Promise.all(hands)
    const expected = await orderIn(database.location, count)
    for (const each of subscriptions) {
      await each.received(count)
      assert.deepEqual(idsIn(each), expected)
    }
  })

  it('a long transaction of another process delays no event, and its own event comes after its commit', async () => {
    using writer = await SocketClient.connect(one, { token })
    using reader = await SocketClient.connect(one)
    const subscription = await reader.begin(posts).listening(text => newPost(writer, text))
    const slow = new pg.Client({ connectionString: database.location })
    await slow.connect()
    try {
      await slow.query('begin')
      const { rows } = await slow.query(
        `insert into posts (author_id, title, content, published_at)
         select id, 'slow', 'slow', now_plus(0) from users order by id limit 1 returning id`,
      )
      const slowId = String(rows[0].id)
      await slow.query(`insert into outbox (kind, post_id, created_at) values ('post-added', ${slowId}, now_plus(0))`)
      const quick = [await newPost(writer, 'quick 1'), await newPost(writer, 'quick 2')]
      await subscription.received(2)
      await slow.query('commit')
      await subscription.received(3)
      const last = await newPost(writer, 'quick 3')
      await subscription.received(4)
      assert.deepEqual(idsIn(subscription), [...quick, slowId, last])
    } finally {
      await slow.end()
    }
  })

  it('4403: deleting a user on one instance closes its sockets on the other', async () => {
    const { id, token: own } = await createMember(one)
    using socket = await SocketClient.connect(other, { token: own })
    using bystander = await SocketClient.connect(other, { token })
    assert.deepEqual(await socket.read('{ me { id } }'), { me: { id: String(id) } })
    await send(one, `DELETE /users/${id}`, undefined, own)
    assert.equal((await socket.closed).code, 4403)
    await bystander.read('{ me { id } }')
  })

  it('4403: a user deleted on one instance gets nothing on the other, even before the other has read the event', async () => {
    const { id, token: own } = await createMember(one)
    using socket = await SocketClient.connect(other, { token: own })
    assert.deepEqual(await socket.read('{ me { id } }'), { me: { id: String(id) } })
    const slow = new pg.Client({ connectionString: database.location })
    await slow.connect()
    try {
      // While this transaction is open, no event gets a position.
      await slow.query('begin; select from event_head for update')
      await send(one, `DELETE /users/${id}`, undefined, own)
      const asked = socket.begin('{ posts { id } }')
      await waitUntil(() => socket.isClosed || asked.isOver)
      assert.deepEqual([asked.events, asked.isOver], [[], false])
      assert.equal((await socket.closed).code, 4403)
    } finally {
      await slow.end()
    }
  })

  it('an instance that reconnects to the database sends all events that it missed', async () => {
    const { hostname, port } = new URL(database.location)
    await using proxy = await Wire.to({ hostname, port })
    const behind = database.location.replace(`:${port}/`, `:${proxy.port}/`)
    await using app = await startTestApp(settingsFor(behind))
    using writer = await SocketClient.connect(one, { token })
    using reader = await SocketClient.connect(app)
    const subscription = await reader.begin(posts).listening(text => newPost(writer, text))
    const expected: string[] = []
    for (let round = 0; round < inForm(1, 5); round++) {
      expected.push(await newPost(writer, 'before'))
      proxy.fromClient = () => 'cut before'
      const { errors } = await reader.ask('{ post(id: 0) { id } }')
      assert.equal(errors?.[0]?.extensions.code, 'SERVICE_UNAVAILABLE')
      assert.equal((await reader.ask(posts)).errors?.[0]?.extensions.code, 'SERVICE_UNAVAILABLE')
      for (let n = 0; n < 20; n++) expected.push(await newPost(writer, `meanwhile ${n}`))
      proxy.fromClient = () => 'pass'
      expected.push(await newPost(writer, 'after'))
      await subscription.received(expected.length)
    }
    assert.deepEqual(idsIn(subscription), expected)
    assert.ok(
      !app.logs.some(({ level }) => Number(level) >= 50),
      JSON.stringify(app.logs.filter(l => Number(l.level) >= 50)),
    )
  })
})
