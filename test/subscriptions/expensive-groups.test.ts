import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import pg from 'pg'
import { startTestAppOn } from '../support/app.ts'
import { postgres, sqlite } from '../support/engines.ts'
import { createMember } from '../support/rest.ts'
import { metricOf, type Operation, SocketClient, untilNoSocketIsLeft } from '../support/sockets.ts'
import { impatient, waitUntil } from '../support/wait.ts'
import { idsIn, newPost } from './posts.ts'

const unlimited = { RATE_LIMIT_MAX: '0' }
const ids = 'subscription { postAdded { id } }'
const different = (n: number) => `subscription { postAdded { a${n}: id } }`

function codeOf({ errors }: Operation): unknown {
  return errors?.[0]?.extensions.code
}

/** Makes reads of comments exceed the read timeout. All other reads work as usual. */
const slowComments = `
  begin;
  alter table comments rename to quick_comments;
  create function slow_comments() returns setof quick_comments language plpgsql as
    $$ begin perform pg_sleep(3600); return query select * from quick_comments; end $$;
  create view comments as select * from slow_comments();
  commit`
const quickComments = `
  begin;
  drop view comments;
  drop function slow_comments();
  alter table quick_comments rename to comments;
  commit`

describe('A subscription that cannot be read in time, on PostgreSQL', { skip: postgres.skip }, () => {
  it('is ended with SUBSCRIPTION_TOO_EXPENSIVE, and others get every event once and in order', async () => {
    await using app = await startTestAppOn(postgres, { ...unlimited, ...impatient })
    const { token } = await createMember(app)
    using writer = await SocketClient.connect(app, { token })
    using reader = await SocketClient.connect(app)
    const other = await reader.begin(ids).listening(text => newPost(writer, text))
    const expensive = await reader
      .begin('subscription { postAdded { id comments { id } } }')
      .listening(text => newPost(writer, text))
    const mark = await newPost(writer, 'from here on')
    for (const each of [other, expensive]) {
      await each.until(() => idsIn(each).includes(mark))
      each.events.length = 0
    }
    const database = new pg.Client({ connectionString: app.database.location })
    await database.connect()
    try {
      await database.query(slowComments)
      const written: string[] = []
      const deadline = performance.now() + 30_000 // two reads of a second each are expected
      const isLate = () => performance.now() > deadline
      const writeAndReceive = async () => {
        written.push(await newPost(writer, 'T'))
        await other.until(() => other.events.length >= written.length || isLate())
        assert.deepEqual(idsIn(other), written)
      }
      let age = 0
      while (!expensive.isOver && !isLate()) {
        await writeAndReceive()
        age = Math.max(age, await metricOf(app, 'duet_events_undelivered_age_seconds'))
      }
      await writeAndReceive()
      assert.ok(age > 0.5, `the oldest event that was not delivered yet was ${age} seconds old`)
      assert.deepEqual([expensive.events, codeOf(expensive)], [[], 'SUBSCRIPTION_TOO_EXPENSIVE'])
      await database.query(quickComments)
    } finally {
      await database.end()
    }
    // The client may subscribe again.
    const again = await reader
      .begin('subscription { postAdded { id comments { id } } }')
      .listening(text => newPost(writer, text))
    assert.ok(!again.isOver)
    await waitUntil(async () => (await metricOf(app, 'duet_events_undelivered_age_seconds')) === 0)
    await reader.close()
    await writer.close()
    await untilNoSocketIsLeft(app)
  })
})

describe('Different subscriptions of one client', () => {
  it('are limited over all its sockets with SUBSCRIPTION_LIMIT_EXCEEDED, and other clients are not affected', async () => {
    await using app = await startTestAppOn(sqlite, {
      ...unlimited,
      SUBSCRIPTION_GROUPS_PER_CLIENT: '3',
      SUBSCRIPTION_GROUPS: '5',
    })
    using one = await SocketClient.connect(app)
    using two = await SocketClient.connect(app)
    const first = one.begin(different(0))
    one.begin(different(1))
    two.begin(different(2))
    two.begin(different(0))
    await waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 4)
    const { errors } = await two.ask(different(3))
    assert.deepEqual(errors, [
      {
        message: 'At most 3 different subscriptions of one client at a time.',
        extensions: { code: 'SUBSCRIPTION_LIMIT_EXCEEDED' },
      },
    ])
    using other = await SocketClient.connect(app, { localAddress: '127.0.0.2' })
    other.begin(different(3))
    other.begin(different(4))
    await waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 6)
    const full = await other.ask(different(5))
    assert.equal(full.errors?.[0]?.extensions.code, 'SUBSCRIPTION_LIMIT_EXCEEDED')
    other.begin(different(1))
    await waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 7)
    first.complete()
    await two.close()
    await waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 4)
    one.begin(different(6))
    await waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 5)
  })
})
