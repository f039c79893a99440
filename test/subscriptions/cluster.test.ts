import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import pg from 'pg'
import { startTestApp } from '../support/app.ts'
import { postgres } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { tokenKeys } from '../support/keys.ts'
import { createMember, send } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { type Operation, SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { idsIn, newPost } from './posts.ts'

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
  const database = shared(() => postgres.create())
  const one = shared(() => startTestApp(settingsFor(database.location)))
  const other = shared(() => startTestApp(settingsFor(database.location)))
  let token: string
  before(async () => {
    token = (await createMember(one)).token
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
})
