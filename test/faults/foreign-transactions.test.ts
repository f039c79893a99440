import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { postgres, type TestDatabase } from '../support/engines.ts'
import { inForm, onlyInFull } from '../support/form.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { startTwo } from './instance.ts'

const seconds = inForm(1, 60)
const perSecond = inForm(20, 50)

describe('Transactions of other programs that stay open, in the same database and in another one', {
  skip: postgres.skip,
}, () => {
  const parts = new AsyncDisposableStack()
  let database: TestDatabase
  before(async () => {
    database = parts.use(await postgres.create())
    const another = parts.use(await postgres.createEmpty())
    for (const { location } of [database, another]) await openTransaction(location, parts)
  })
  after(() => parts.disposeAsync())

  it('delay no event between two instances, and the order stays exact', { skip: onlyInFull }, async t => {
    await using own = new AsyncDisposableStack()
    const [one, other] = await startTwo(database, own)
    const { token } = await createMember(one)
    using writer = await SocketClient.connect(one, { token })
    using reader = await SocketClient.connect(other)
    const write = async (text: string) => (await writer.read<Created>(create, { text })).createPost.id
    const subscription = await reader.begin('subscription { postAdded { id } }').listening(write)
    const first = await write('first')
    await subscription.received(1)

    const answered = new Map<string, number>()
    const arrived = new Map<string, number>()
    const { hear } = subscription
    subscription.hear = message => {
      hear.call(subscription, message)
      arrived.set((subscription.events.at(-1) as Told).postAdded.id, performance.now())
    }
    const writes: Promise<unknown>[] = []
    const begun = performance.now()
    for (let n = 0; n < seconds * perSecond; n++) {
      await delay(Math.max(0, begun + (n * 1000) / perSecond - performance.now()))
      writes.push(write('while they are open').then(id => answered.set(id, performance.now())))
    }
    await Promise.all(writes)
    await subscription.received(1 + writes.length)
    assert.deepEqual(
      subscription.events.map(event => (event as Told).postAdded.id),
      await postsFrom(database, first),
    )
    for (const instance of [one, other]) assert.doesNotMatch(instance.output, /Warning/)
    const lags = [...answered].map(([id, at]) => Math.max(0, (arrived.get(id) ?? Number.NaN) - at))
    const p99 = lags.sort((a, b) => a - b)[Math.floor(lags.length * 0.99)] ?? Number.NaN
    t.diagnostic(`${writes.length} events in ${seconds} s; 99 of 100 arrived within ${p99.toFixed(1)} ms of the answer`)
    if (inForm(false, true)) assert.ok(p99 <= 250, `${p99} ms`) // only on an idle machine
  })
})

interface Created {
  readonly createPost: { readonly id: string }
}

interface Told {
  readonly postAdded: { readonly id: string }
}

const create = 'mutation ($text: String!) { createPost(title: $text, content: $text) { id } }'

/** A transaction that has written something. So its number is lower than those of all later transactions. */
async function openTransaction(location: string, parts: AsyncDisposableStack): Promise<void> {
  const client = new pg.Client({ connectionString: location })
  await client.connect()
  parts.defer(() => client.end())
  await client.query('begin; create table report (line text)')
}

/** The ids of the posts, starting with this one, in the order of their events. */
async function postsFrom({ location }: TestDatabase, first: string): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: location })
  await client.connect()
  const { rows } = await client.query(
    "select post_id from outbox where kind = 'post-added' and post_id >= $1 order by position, id",
    [first],
  )
  await client.end()
  return rows.map(({ post_id }) => String(post_id))
}
