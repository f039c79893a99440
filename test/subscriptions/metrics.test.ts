import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { connectTo } from '../storage/transaction.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { postgres } from '../support/engines.ts'
import { ask } from '../support/http.ts'
import { createMember } from '../support/rest.ts'
import { metricOf, SocketClient } from '../support/sockets.ts'
import { impatient, waitUntil } from '../support/wait.ts'
import { newPost } from './posts.ts'

const unlimited = { RATE_LIMIT_MAX: '0' }

describe('Metrics of sockets', () => {
  it('count sockets, subscriptions, groups, deliveries and their lag, and events that are skipped because their post is deleted', async () => {
    await using app = await startTestApp(unlimited)
    const names = [
      ...['duet_sockets', 'duet_subscriptions', 'duet_subscription_groups', 'duet_events_delivered_total'],
      ...['duet_events_lag_seconds_count', 'duet_events_skipped_total', 'duet_sockets_closed_slow_total'],
    ]
    const measured = () => Promise.all(names.map(name => metricOf(app, name)))
    const becomes = (...expected: number[]) =>
      waitUntil(async () => JSON.stringify(await measured()) === JSON.stringify(expected)).catch(async () =>
        assert.deepEqual(await measured(), expected),
      )
    await becomes(0, 0, 0, 0, 0, 0, 0)
    using writer = await SocketClient.connect(app, await createMember(app))
    using one = await SocketClient.connect(app)
    const silent = await SocketClient.open(app)
    await becomes(3, 0, 0, 0, 0, 0, 0)
    await waitUntil(async () => (await metricOf(app, 'duet_http_requests_in_flight')) === 1) // which asks for this
    silent[Symbol.dispose]()
    const first = one.begin('subscription { postAdded { id } }')
    one.begin('subscription { postAdded { id } }')
    writer.begin('subscription { postAdded { title } }')
    await becomes(2, 3, 2, 0, 0, 0, 0)
    // The lag is measured once for each group. There are no subscribers for comments, and an event without subscribers does not count as delivered.
    const post = await newPost(writer, 'T')
    await becomes(2, 3, 2, 3, 2, 0, 0)
    await writer.read(`mutation { addComment(postId: ${post}, text: "x") { id } }`)
    const last = await newPost(writer, 'T')
    await becomes(2, 3, 2, 6, 4, 0, 0)
    const gone = Number(last) + 1 // is deleted by the operation that creates it
    await writer.read(`mutation { createPost(title: "T", content: "C") { id } deletePost(id: ${gone}) }`)
    await becomes(2, 3, 2, 6, 4, 2, 0)
    await newPost(writer, 'T')
    await becomes(2, 3, 2, 9, 6, 2, 0)
    first.complete()
    await becomes(2, 2, 2, 9, 6, 2, 0)
    await one.close()
    await becomes(1, 1, 1, 9, 6, 2, 0)
    writer[Symbol.dispose]()
    await becomes(0, 0, 0, 9, 6, 2, 0)
    const { body } = await ask(`${app.url}/metrics`)
    assert.match(body, /^duet_events_lag_seconds_bucket\{le="10"\} 6$/m)
    for (const name of names) assert.match(body, new RegExp(`^# HELP ${name.replace(/_count$/, '')} \\S`, 'm'), name)
  })

  it('count operations that have ended by root field and outcome, whatever clients call them', async () => {
    await using app = await startTestApp(unlimited)
    using client = await SocketClient.connect(app)
    const [stopped, cut] = ['x', 'y'].map(key => client.begin(`subscription secret { ${key}: postAdded { id } }`))
    assert.ok(stopped && cut)
    await client.read('query secret { a: posts(limit: 1) { id } ...more } fragment more on Query { posts { id } }')
    await client.read('query secret { posts { id } users { id } }')
    await client.ask('query secret { secret }')
    await client.ask('mutation secret { createPost(title: "", content: "") { id } }')
    await client.ask('subscription secret { commentAdded(postId: 7) { id } }')
    await waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 2)
    stopped.complete()
    await client.close()
    const expected = [
      'name="(none)",outcome="GRAPHQL_VALIDATION_FAILED"} 1',
      'name="(several)",outcome="ok"} 1',
      'name="commentAdded",outcome="NOT_FOUND"} 1',
      'name="createPost",outcome="UNAUTHENTICATED"} 1',
      'name="postAdded",outcome="stopped"} 2',
      'name="posts",outcome="ok"} 1',
    ]
    const counted = async () =>
      Array.from((await ask(`${app.url}/metrics`)).body.matchAll(/^duet_socket_operations_total\{(.*)$/gm), on => on[1])
    await waitUntil(async () => (await metricOf(app, 'duet_sockets')) === 0)
    assert.deepEqual((await counted()).toSorted(), expected)
  })

  it('tell the age of events by the clock of the database, also of those that get no position', {
    skip: postgres.skip,
  }, async () => {
    const clock = { now: () => Date.now() + 3_600_000 }
    await using app = await startTestAppOn(postgres, { ...unlimited, ...impatient }, { clock })
    using client = await SocketClient.connect(app, await createMember(app))
    const posts = await client.begin('subscription { postAdded { id } }').listening(text => newPost(client, text))
    // The events with which a subscription begins may count as replayed.
    await waitUntil(async () => {
      await newPost(client, 'counted')
      return (await metricOf(app, 'duet_events_lag_seconds_count')) > 0
    })
    const lag = await metricOf(app, 'duet_events_lag_seconds_sum')
    assert.ok(lag > 0 && lag < 1_000, `${lag} seconds`)
    const age = () => metricOf(app, 'duet_events_undelivered_age_seconds')
    await waitUntil(async () => (await age()) === 0)
    await using holder = await connectTo(app.database.location)
    await holder.query('begin; select position from event_head for update')
    const id = await newPost(client, 'late')
    await waitUntil(async () => (await age()) > 1.5) // longer than an attempt to give it a position
    assert.ok((await age()) < 1_000)
    await holder.query('commit')
    await posts.until(events => JSON.stringify(events.at(-1)) === JSON.stringify({ postAdded: { id } }))
    await waitUntil(async () => (await age()) === 0)
  })
})
