import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { unavailable } from '../../src/core/errors.ts'
import { placeFromText, placeToText } from '../../src/core/events.ts'
import { execute } from '../faults/execute.ts'
import { startTestApp, startTestAppOn, type TestApp } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { runs } from '../support/form.ts'
import { tokenKeys } from '../support/keys.ts'
import { createMember } from '../support/rest.ts'
import { metricOf, type Operation, SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { commentAdded, FakeSubscriber, FanOutStage, postAdded, postDeleted } from './fakes.ts'

const posts = 'subscription { postAdded { id } }'
const comments = 'subscription ($postId: ID!) { commentAdded(postId: $postId) { id } }'
const create = 'mutation ($text: String!) { createPost(title: "T", content: $text) { id } }'

async function newPost(writer: SocketClient, text = 'text'): Promise<string> {
  return (await writer.read<{ createPost: { id: string } }>(create, { text })).createPost.id
}

async function newComment(writer: SocketClient, postId: string): Promise<string> {
  const mutation = 'mutation ($postId: ID!) { addComment(postId: $postId, text: "x") { id } }'
  return (await writer.read<{ addComment: { id: string } }>(mutation, { postId })).addComment.id
}

/** The ids of the posts or comments in events. */
function idsIn({ events }: Operation): readonly string[] {
  return events.flatMap(event => Object.values(event as Record<string, { id: string }>).map(({ id }) => id))
}

for (const kind of engineKinds) {
  describe(`A subscription with positions on ${kind.name}`, { skip: kind.skip }, () => {
    let app: TestApp
    let writer: SocketClient
    let token: string
    before(async () => {
      app = await startTestAppOn(kind, { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' })
      token = (await createMember(app)).token
      writer = await SocketClient.connect(app, { token })
    })
    after(async () => {
      writer[Symbol.dispose]()
      await app[Symbol.asyncDispose]()
    })

    /** The position before the events that the test creates. */
    async function start(): Promise<string> {
      using client = await SocketClient.connect(app)
      const operation = client.begin(posts, undefined, { extensions: { positions: true } })
      await operation.listening(() => newPost(writer))
      return operation.positions.at(-1) ?? assert.fail()
    }

    it('resumes after the position of any event: the later events once and in order, then new ones', async () => {
      const first = await start()
      const missed = [await newPost(writer), await newPost(writer), await newPost(writer)]
      using client = await SocketClient.connect(app)
      const all = client.begin(posts, undefined, { extensions: { after: first } })
      await all.received(3)
      const fresh = await newPost(writer)
      await all.received(4)
      assert.deepEqual(idsIn(all), [...missed, fresh])
      assert.equal(new Set(all.positions).size, 4)
      const rest = client.begin(posts, undefined, { extensions: { after: all.positions[1] } })
      await rest.received(2)
      assert.deepEqual(idsIn(rest), [missed[2], fresh])
      assert.deepEqual(rest.positions, all.positions.slice(2))
    })

    it('gets comments of its post only, without those that are deleted, and ends with the post', async () => {
      const post = await newPost(writer)
      const other = await newPost(writer)
      const position = await start()
      const wanted = await newComment(writer, post)
      await newComment(writer, other)
      using client = await SocketClient.connect(app)
      const first = client.begin(comments, { postId: post }, { extensions: { after: position } })
      await first.received(1)
      assert.deepEqual(idsIn(first), [wanted])
      await writer.read('mutation ($id: ID!) { deletePost(id: $id) }', { id: post })
      await first.over()
      const late = client.begin(comments, { postId: post }, { extensions: { after: position } })
      await late.over()
      assert.deepEqual([late.events, late.errors], [[], undefined])
    })

    it('is refused if its post did not exist at the position', async () => {
      const position = await start()
      using client = await SocketClient.connect(app)
      const operation = client.begin(comments, { postId: '123456789' }, { extensions: { after: position } })
      await operation.over()
      assert.equal(operation.errors?.[0]?.extensions.code, 'NOT_FOUND')
    })

    it('is refused with POSITION_UNKNOWN at a position that is not ours, malformed or no longer kept', async () => {
      const position = await start()
      const place = placeFromText(position) ?? assert.fail()
      const later = { ...place.position, id: place.position.id + 1000, transaction: place.position.transaction + 1000 }
      const unknown = [
        placeToText({ ...place, position: later }),
        placeToText({ ...place, at: place.at + 1 }),
        placeToText({ ...place, at: 9e15 }),
        `${position}x`,
        position.slice(1),
        'x'.repeat(100_000),
        '',
        5,
        { position },
      ]
      using client = await SocketClient.connect(app)
      const codeFor = async (after: unknown) => {
        const operation = client.begin(posts, undefined, { extensions: { after } })
        await operation.over()
        return operation.errors?.[0]?.extensions.code
      }
      for (const after of unknown) assert.equal(await codeFor(after), 'POSITION_UNKNOWN', JSON.stringify(after))
      await execute(app.database, `update outbox set created_at = '${new Date(place.at - 3_601_000).toISOString()}'`)
      assert.equal(await codeFor(placeToText({ ...place, at: place.at - 3_601_000 })), 'POSITION_UNKNOWN')
      assert.equal(await codeFor(placeToText({ ...place, at: place.at - 3_600_999 })), 'POSITION_UNKNOWN')
    })

    it('gets far more events than one read of the log returns, even if its client reads them slowly', async () => {
      const position = await start()
      const content = 'x'.repeat(10_000)
      const mutation = `mutation ($text: String!) { ${Array.from({ length: 50 }, (_, n) => `p${n}: createPost(title: "T", content: $text) { id }`)} }`
      const missed: string[] = []
      for (let n = 0; n < 12; n++) {
        const answer = await writer.read<Record<string, { id: string }>>(mutation, { text: content })
        missed.push(...Object.values(answer).map(({ id }) => id))
      }
      using client = await SocketClient.connect(app)
      const operation = client.begin('subscription { postAdded { id content } }', undefined, {
        extensions: { after: position },
      })
      await operation.received(1)
      client.websocket.pause()
      // The service stops sending while the client does not read, so it does not treat the client as a slow consumer.
      const replayed = () => metricOf(app, 'duet_events_replayed_total')
      let [before, now] = [-1, await replayed()]
      while (now !== before) [before, now] = [now, await settled(replayed)]
      client.websocket.resume()
      await operation.received(missed.length)
      assert.deepEqual(idsIn(operation), missed)
    })

    it('works on another instance, and after a restart', async () => {
      await using database = await kind.create()
      const DATABASE_URL = kind.kind === 'sqlite' ? `sqlite:${database.location}` : database.location
      const serve = () => startTestApp({ DATABASE_URL, TOKEN_KEYS: tokenKeys })
      const missed: string[] = []
      let position: string | undefined
      {
        await using first = await serve()
        using own = await SocketClient.connect(first, { token: (await createMember(first)).token })
        const operation = own.begin(posts, undefined, { extensions: { positions: true } })
        await operation.listening(() => newPost(own))
        position = operation.positions.at(-1)
        missed.push(await newPost(own), await newPost(own))
      }
      await using second = await serve()
      using client = await SocketClient.connect(second)
      const operation = client.begin(posts, undefined, { extensions: { after: position } })
      await operation.received(2)
      assert.deepEqual(idsIn(operation), missed)
    })
  })
}

async function settled(read: () => Promise<number>): Promise<number> {
  for (let n = 0; n < 50; n++) await turn()
  return read()
}

describe('A text of a position', () => {
  it('is parsed back to the same position, and other texts are refused', () => {
    const number = fc.nat({ max: Number.MAX_SAFE_INTEGER })
    fc.assert(
      fc.property(number, number, number, (transaction, id, at) => {
        const place = { position: { transaction, id }, at }
        assert.deepEqual(placeFromText(placeToText(place)), place)
      }),
    )
    fc.assert(
      fc.property(fc.string(), text => {
        const place = placeFromText(text)
        assert.ok(place === undefined || placeToText(place) === text)
      }),
    )
  })
})

describe('Subscribers that resume while events are delivered', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('add' as const), count: fc.integer({ min: 1, max: 120 }) }),
    fc.record({ kind: fc.constant('deliver' as const), count: fc.integer({ min: 1, max: 120 }) }),
    fc.record({ kind: fc.constant('resume' as const), count: fc.nat(400) }),
    fc.record({ kind: fc.constant('wait' as const), count: fc.integer({ min: 1, max: 5 }) }),
  )

  it('get every event after their position once and in order, with any timing of reads and deliveries', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async steps => {
        const stage = new FanOutStage()
        const all = [{ from: 0, ...(await stage.subscribe(posts)) }]
        const add = (count: number) =>
          Array.from({ length: count }, () => stage.log.add(postAdded(stage.log.events.length + 1)))
        add(1)
        let handed = 0
        let delivering: Promise<unknown> = Promise.resolve()
        const deliver = (count: number) => {
          const events = stage.log.events.slice(handed, handed + count)
          handed += events.length
          delivering = delivering.then(() => stage.deliver(events))
        }
        for (const { kind, count } of steps) {
          if (kind === 'add') add(count)
          else if (kind === 'deliver') deliver(count)
          else if (kind === 'resume') {
            const from = 1 + (count % stage.log.events.length)
            const subscriber = new FakeSubscriber()
            const after = placeToText(stage.log.events[from - 1] ?? assert.fail())
            await stage.fanOut.subscribe(stage.subscription(posts), subscriber, 'c', { positions: true, after })
            all.push({ from, received: subscriber.received, leave() {} })
          } else for (let n = 0; n < count; n++) await turn()
        }
        deliver(stage.log.events.length)
        await delivering
        const last = stage.log.events.length
        for (const { from, received } of all) {
          await waitUntil(() => received.length >= last - from)
          assert.deepEqual(
            received.map(event => Number((event as { postAdded: { id: string } }).postAdded.id)),
            Array.from({ length: last - from }, (_, n) => from + n + 1),
          )
        }
      }),
      { numRuns: runs(60, 500) },
    )
  })

  it('get positions only if they ask for them, even if they share a group with others', async () => {
    const stage = new FanOutStage()
    const [plain, placed] = [new FakeSubscriber(), new FakeSubscriber()]
    await stage.fanOut.subscribe(stage.subscription(posts), plain, 'c')
    await stage.fanOut.subscribe(stage.subscription(posts), placed, 'c', { positions: true })
    const [event] = await stage.happen(postAdded(1))
    assert.deepEqual(plain.positions, [undefined])
    assert.deepEqual(placed.positions, [placeToText(event ?? assert.fail())])
  })

  it('share one read and one message with the others once they have caught up', async () => {
    const stage = new FanOutStage()
    const [event] = await stage.happen(postAdded(1))
    const after = placeToText(event ?? assert.fail())
    const subscribers = Array.from({ length: 3 }, () => new FakeSubscriber())
    for (const each of subscribers)
      await stage.fanOut.subscribe(stage.subscription(posts), each, 'c', { positions: true, after })
    for (let n = 0; n < 20; n++) await turn()
    assert.equal(stage.fanOut.groups, 1)
    await stage.happen(postAdded(2))
    assert.equal(stage.store.reads.length, 1)
    assert.deepEqual(new Set(subscribers.map(({ positions }) => positions[0])).size, 1)
    assert.deepEqual(stage.delivered, [[3, 0.25]])
  })

  it('are ended with POSITION_UNKNOWN if events were deleted before they read them', async () => {
    const stage = new FanOutStage()
    const first = stage.log.add(postAdded(1))
    for (let n = 2; n <= 150; n++) stage.log.add(postAdded(n))
    const subscriber = new FakeSubscriber()
    stage.store.answer = id => {
      if (id === 50) stage.log.purged = 140
      return `{"postAdded":{"id":"${id}"}}`
    }
    const after = placeToText(first)
    await stage.fanOut.subscribe(stage.subscription(posts), subscriber, 'c', { positions: true, after })
    await waitUntil(() => subscriber.received.at(-1) === 'POSITION_UNKNOWN')
    assert.equal(stage.fanOut.subscriptions, 0)
  })

  it('wait while the store is unavailable, and then get everything', async () => {
    const stage = new FanOutStage()
    const first = stage.log.add(postAdded(1))
    for (let n = 2; n <= 5; n++) stage.log.add(postAdded(n))
    const read = stage.log.after.bind(stage.log)
    let failures = 2
    stage.log.after = async position => {
      if (failures-- > 0) throw unavailable(new Error('an outage'))
      return read(position)
    }
    const subscriber = new FakeSubscriber()
    const after = placeToText(first)
    await stage.fanOut.subscribe(stage.subscription(posts), subscriber, 'c', { positions: true, after })
    await waitUntil(() => subscriber.received.length === 4)
    assert.deepEqual(stage.reported, [])
  })

  it('stop reading when they leave, and end with their post', async () => {
    const stage = new FanOutStage()
    const first = stage.log.add(postAdded(1))
    for (let n = 2; n <= 500; n++) stage.log.add(commentAdded(1, n))
    stage.log.add(postDeleted(1))
    const after = placeToText(first)
    const subscription = stage.subscription(comments, { postId: '1' })
    const gone = new FakeSubscriber()
    const leave = await stage.fanOut.subscribe(subscription, gone, 'c', { positions: true, after })
    leave()
    const { length } = gone.received
    const whole = new FakeSubscriber()
    await stage.fanOut.subscribe(subscription, whole, 'c', { positions: true, after })
    await waitUntil(() => whole.received.at(-1) === 'complete')
    assert.deepEqual([whole.received.length, gone.received.length <= length + 1], [500, true])
  })

  it('read at most two messages at a time for a client that does not read, however many it resumes', async () => {
    const stage = new FanOutStage()
    const first = stage.log.add(postAdded(1))
    for (let n = 2; n <= 10; n++) stage.log.add(postAdded(n))
    const reading = Promise.withResolvers<void>()
    const subscribers = Array.from({ length: 50 }, () => new FakeSubscriber())
    // The first message fills the socket, which all of them share.
    let unread: Promise<void> | undefined
    const after = placeToText(first)
    for (const each of subscribers) {
      const { next, fail, complete } = each
      const shared = {
        ready: () => unread,
        next: (message: Parameters<typeof next>[0]) => {
          assert.equal(unread, undefined, 'more is sent than the client reads')
          unread = reading.promise
          next(message)
        },
        fail,
        complete,
      }
      await stage.fanOut.subscribe(stage.subscription(posts), shared, 'c', { positions: true, after })
    }
    for (let n = 0; n < 200; n++) await turn()
    assert.equal(subscribers.flatMap(({ received }) => received).length, 1)
    assert.ok(stage.store.reads.length <= 2, `${stage.store.reads.length} reads`)
  })

  it('wait until their client has read what was sent', async () => {
    const stage = new FanOutStage()
    const first = stage.log.add(postAdded(1))
    for (let n = 2; n <= 10; n++) stage.log.add(postAdded(n))
    const subscriber = new FakeSubscriber()
    const reading = Promise.withResolvers<void>()
    subscriber.unread = reading.promise
    const after = placeToText(first)
    await stage.fanOut.subscribe(stage.subscription(posts), subscriber, 'c', { positions: true, after })
    for (let n = 0; n < 100; n++) await turn()
    assert.equal(subscriber.received.length, 0)
    subscriber.unread = undefined
    reading.resolve()
    await waitUntil(() => subscriber.received.length === 9)
  })
})
