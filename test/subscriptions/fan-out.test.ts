import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { unavailable } from '../../src/core/errors.ts'
import type { Selection } from '../../src/core/selection.ts'
import { EventMessage } from '../../src/graphql/live/event-message.ts'
import { atEachTurn, waitUntil } from '../support/wait.ts'
import { commentAdded, FakeSubscriber, FanOutStage, postAdded, postDeleted, soon } from './fakes.ts'

const ids = 'subscription { postAdded { id } }'
const titles = 'subscription { postAdded { title } }'
const comments = 'subscription ($post: ID!) { commentAdded(postId: $post) { id } }'

describe('FanOut', () => {
  it('reads an event once for all subscribers with the same selection, in every notation, and again for others', async () => {
    const stage = new FanOutStage()
    const latest = 'subscription ($n: Int) { postAdded { author { posts(limit: $n) { id } } } }'
    const again =
      'subscription Named($unused: Boolean = true) { ...F } fragment F on Subscription { postAdded { id @include(if: $unused) } }'
    const same = [await stage.subscribe(ids), await stage.subscribe(ids), await stage.subscribe(again)]
    for (const other of [titles, 'subscription { added: postAdded { id } }']) await stage.subscribe(other)
    for (const n of [1, 2, 2]) await stage.subscribe(latest, { n })
    assert.deepEqual([stage.fanOut.groups.size, stage.fanOut.groups.members], [5, 8])
    await stage.happen(postAdded(7), postAdded(8))
    assert.equal(stage.store.reads.length, 2 * 5)
    for (const { received } of same)
      assert.deepEqual(received, [{ postAdded: { id: '7' } }, { postAdded: { id: '8' } }])
  })

  it('a subscription to the comments of a post ends if it starts while that is deleted, in every order of the reads', async () => {
    for (const field of ['Added(postId: 5) { id }', 'Updated(postId: 5) { id }', 'Deleted(postId: 5)']) {
      for (const isDeletedFirst of [true, false]) {
        const stage = new FanOutStage()
        const deletion = Promise.withResolvers<void>()
        // The end of the log is read before the deletion or after it, and then there is no such post.
        if (isDeletedFirst) await stage.happen(postDeleted(5))
        stage.store.hasPost = () => deletion.promise.then(() => false)
        const subscriber = new FakeSubscriber()
        const subscription = stage.subscription(`subscription { comment${field} }`)
        const beginning = stage.fanOut.subscribe(subscription, subscriber, 'a client')
        await turn()
        if (!isDeletedFirst) await stage.happen(postDeleted(5))
        deletion.resolve()
        await (isDeletedFirst ? assert.rejects(beginning, { code: 'NOT_FOUND' }) : beginning)
        assert.deepEqual(subscriber.received, isDeletedFirst ? [] : ['complete'], field)
        assert.deepEqual([stage.fanOut.groups.size, stage.fanOut.groups.members, stage.skipped], [0, 0, 0])
      }
    }
  })

  it('tells since when the oldest of the events waits that its groups are at, without those that catch up', async () => {
    const stage = new FanOutStage()
    const reads = Promise.withResolvers<string>()
    await stage.subscribe(ids)
    await stage.subscribe(comments, { post: '5' })
    const [first] = await stage.happen(postAdded(8), postAdded(9))
    stage.store.answer = () => reads.promise
    await stage.resume(ids, first ?? assert.fail())
    await soon(() => stage.store.reads.length === 3)
    assert.equal(stage.fanOut.undeliveredSince, undefined)
    await stage.add(Object.assign(postAdded(1), { at: 2000 }), Object.assign(commentAdded(5, 1), { at: 1500 }))
    assert.equal(stage.fanOut.undeliveredSince, 1500)
    reads.resolve('{}')
    await stage.happen()
  })

  it('leaves turns to other work while it tells of many deletions, for which it reads nothing', async () => {
    const stage = new FanOutStage()
    let [together, most] = [0, 0]
    const all = []
    for (let group = 0; group < 5; group++) {
      const { subscriber, received } = await stage.subscribe(`subscription { _${group}: postDeleted }`)
      subscriber.onNext = () => {
        most = Math.max(most, ++together)
        for (const end = performance.now() + 1; performance.now() < end; );
      }
      all.push(received)
    }
    let isOver = false
    const others = (async () => {
      for (; !isOver; await turn()) together = 0
    })()
    await stage.happen(...Array.from({ length: 40 }, (_, index) => postDeleted(index + 1)))
    isOver = true
    await others
    assert.ok(most < 20, `${most} messages were sent in one turn`)
    for (const received of all) assert.equal(received.length, 40)
  })

  it('members may join and leave while an event is sent', async () => {
    const stage = new FanOutStage()
    const leaving: (() => void)[] = []
    const received: string[] = []
    for (const name of ['a', 'b', 'c']) {
      const next = () => {
        received.push(name)
        for (const leave of leaving.splice(0)) leave()
      }
      const leave = await stage.fanOut.subscribe(
        stage.subscription(ids),
        { ready: () => undefined, next, end() {} },
        'a client',
      )
      if (name !== 'c') leaving.push(leave)
    }
    await stage.happen(postAdded(1), postAdded(2))
    assert.deepEqual(received, ['a', 'c', 'c'])
    assert.equal(stage.fanOut.groups.members, 1)
  })
})

/** The key of the first selected field. */
function fieldIn({ fields: [wish] }: Selection): string | undefined {
  return wish?.kind === 'one' ? wish.fields[0]?.key : undefined
}

function eventsOf(...posts: readonly number[]) {
  return posts.map(id => ({ postAdded: { id: String(id) } }))
}

describe('A group whose reads', () => {
  it('fail or exceed their time limit twice in a row, and again later, gets all events', async t => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const stage = new FanOutStage({ readMs: 100 })
    const one = await stage.subscribe(ids)
    const { answer } = stage.store
    const failures = [1, 1, 2, 4, 4]
    stage.store.answer = async (id, selection) => {
      await stage.read()
      if (failures[0] === id) {
        failures.shift()
        throw unavailable(new Error('Too late'))
      }
      if ([5, 6, 8, 9].includes(id)) now += 200
      return answer(id, selection)
    }
    await stage.happen(...[1, 2, 3, 4, 5, 6, 7, 8, 9].map(postAdded))
    assert.deepEqual(one.received, eventsOf(1, 2, 3, 4, 5, 6, 7, 8, 9))
  })

  it('fail during an outage of any length gets all events afterwards', async t => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const stage = new FanOutStage()
    const one = await stage.subscribe(ids)
    const { answer } = stage.store
    let failures = 0
    stage.store.answer = (id, selection) => {
      if (failures === 4) return answer(id, selection)
      now += 3_600_000
      stage.log.isAway = ++failures < 4
      throw unavailable(new Error('away'))
    }
    await stage.happen(postAdded(1), postAdded(2))
    assert.deepEqual([failures, one.received], [4, eventsOf(1, 2)])
  })

  it('exceed their time limit three times in a row is ended', async () => {
    const stage = new FanOutStage({ readMs: -1 })
    const one = await stage.subscribe(ids)
    await stage.happen(postAdded(1), postAdded(2), postAdded(3), postAdded(4))
    assert.deepEqual(one.received, [...eventsOf(1, 2), 'SUBSCRIPTION_TOO_EXPENSIVE'])
    assert.deepEqual([stage.fanOut.groups.size, stage.fanOut.groups.members], [0, 0])
  })

  it('are in time gets all events once and in order, however many events it is behind', async () => {
    const stage = new FanOutStage()
    const behind = await stage.subscribe(titles)
    const other = await stage.subscribe(ids)
    const { answer } = stage.store
    const released = Promise.withResolvers<void>()
    stage.store.answer = async (id, selection) => {
      if (fieldIn(selection) === 'title') await released.promise
      return answer(id, selection)
    }
    const all = Array.from({ length: 2_500 }, (_, n) => n + 1)
    for (let n = 0; n < 2_000; n += 250) {
      await stage.add(...all.slice(n, n + 250).map(postAdded))
      await soon(() => other.received.length === n + 250)
    }
    assert.deepEqual([behind.received, stage.log.pages], [[], 0])
    released.resolve()
    await stage.happen(...all.slice(2_000).map(postAdded))
    for (const { received } of [behind, other]) assert.deepEqual(received, eventsOf(...all))
    assert.ok(stage.log.pages >= 2, 'the events are no longer in memory, so it has read the log')
    await stage.happen(postAdded(2_501))
    assert.deepEqual(behind.received.slice(-1), eventsOf(2_501))
  })

  it('take long does not hold up others, however many such groups there are', async t => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const stage = new FanOutStage()
    const long = Array.from({ length: 50 }, (_, n) => `subscription { postAdded { title a${n}: id } }`)
    const behind = await Promise.all(long.map(query => stage.subscribe(query)))
    const other = await stage.subscribe(ids)
    const { answer } = stage.store
    const held: PromiseWithResolvers<void>[] = []
    stage.store.answer = async (id, selection) => {
      if (fieldIn(selection) === 'title') {
        now += 100
        if (id > 1) {
          held.push(Promise.withResolvers())
          await held.at(-1)?.promise
        }
      }
      return answer(id, selection)
    }
    await stage.happen(postAdded(1))
    await stage.add(postAdded(2), postAdded(3))
    await soon(() => other.received.length === 3)
    assert.equal(held.length, 2, 'of the long reads, few run at a time')
    for (let n = 0; n < 100; n++) {
      await soon(() => held.length > n)
      held[n]?.resolve()
    }
    await soon(() => stage.fanOut.undeliveredSince === undefined)
    for (const { received } of behind) assert.equal(received.length, 3)
  })

  it('had a long answer last does not hold up others either', async () => {
    const stage = new FanOutStage()
    const queries = Array.from({ length: 20 }, (_, n) => `subscription { postAdded { title a${n}: id } }`)
    for (const query of queries) await stage.subscribe(query)
    const other = await stage.subscribe(ids)
    const { answer } = stage.store
    const held: PromiseWithResolvers<void>[] = []
    stage.store.answer = async (id, selection) => {
      if (fieldIn(selection) !== 'title') return answer(id, selection)
      held.push(Promise.withResolvers())
      if (id > 6) await held.at(-1)?.promise
      return JSON.stringify({ postAdded: 'x'.repeat(20_000) })
    }
    await stage.happen(...[1, 2, 3, 4, 5, 6].map(postAdded)) // the average time of its reads is short now
    const before = held.length
    await stage.add(postAdded(7))
    await soon(() => other.received.length === 7)
    assert.equal(held.length - before, 2)
    for (let n = before; n < before + 20; n++) {
      await soon(() => held.length > n)
      held[n]?.resolve()
    }
    await soon(() => stage.fanOut.undeliveredSince === undefined)
  })

  it('are in time is ended if it is a minute behind, and not before', async t => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const stage = new FanOutStage()
    const behind = await stage.subscribe(titles)
    const other = await stage.subscribe(ids)
    const { answer } = stage.store
    stage.store.answer = async (id, selection) => {
      if (fieldIn(selection) !== 'title') return answer(id, selection)
      await turn() // the time passes while the database works, not while the feed tells of events
      now += 500
      return answer(id, selection)
    }
    // It reaches what happened before within 60 seconds each time.
    for (let n = 1; n <= 300; n += 100) await stage.happen(...Array.from({ length: 100 }, (_, at) => postAdded(n + at)))
    assert.equal(behind.received.length, 300)
    await stage.happen(...Array.from({ length: 200 }, (_, at) => postAdded(301 + at)))
    // One event that woke it, and those of the following minute.
    assert.deepEqual([behind.received.length, behind.received.at(-1)], [300 + 122 + 1, 'SUBSCRIPTION_TOO_EXPENSIVE'])
    assert.equal(other.received.length, 500)
  })
})

describe('A refused subscription', () => {
  it('does not count, wherever it fails and however often', async () => {
    const stage = new FanOutStage({ groupsPerClient: 1, groups: 1 })
    const [kept] = await stage.happen(postAdded(1))
    const comments = 'subscription { commentAdded(postId: 1) { id } }'
    const away = () => Promise.reject(unavailable(new Error('away')))
    const resumed = () => stage.resume(ids, kept ?? assert.fail())
    const [joined, commented] = [() => stage.subscribe(ids), () => stage.subscribe(comments)]
    const absent = { hasPost: async () => false }
    const refusals = [
      { where: 'at the end of the log', log: { isAway: true }, refuse: joined },
      { where: 'at an unknown position', refuse: () => stage.resume(ids, { position: 1, at: 5 }) },
      { where: 'at a check of the position', log: { keeps: away }, refuse: resumed },
      { where: 'at a check of the post', store: { hasPost: away }, refuse: commented },
      { where: 'at an absent post', store: absent, refuse: commented },
      { where: 'at a check of its end', store: absent, log: { tellsEndOf: away }, refuse: commented },
    ]
    const { keeps, tellsEndOf } = stage.log
    const { hasPost } = stage.store
    for (const { where, log, store, refuse } of refusals) {
      for (const round of [1, 2]) {
        Object.assign(stage.log, log)
        Object.assign(stage.store, store)
        await assert.rejects(refuse, `${where} ${round}`)
        Object.assign(stage.log, { isAway: false, keeps, tellsEndOf })
        Object.assign(stage.store, { hasPost })
        assert.deepEqual([stage.fanOut.groups.size, stage.fanOut.groups.members], [0, 0], where)
      }
      const [{ leave }, same] = [await stage.subscribe(ids), await stage.subscribe(ids)]
      same.leave()
      await assert.rejects(stage.subscribe(titles), { code: 'SUBSCRIPTION_LIMIT_EXCEEDED', message: /of one client/ })
      assert.deepEqual([stage.fanOut.groups.size, stage.fanOut.groups.members], [1, 1], where)
      leave()
    }
  })

  it('because of the subscriptions of others does not count for the limit of its client', async () => {
    const stage = new FanOutStage({ groups: 1, groupsPerClient: 1 })
    const { leave } = await stage.subscribe(ids, {}, 'another client')
    await assert.rejects(stage.subscribe(titles), { code: 'SUBSCRIPTION_LIMIT_EXCEEDED' })
    leave()
    await assert.doesNotReject(stage.subscribe(ids))
  })
})

describe('Sending an event', () => {
  it('ends a group with an internal error, and reports it', async () => {
    const stage = new FanOutStage()
    const { received } = await stage.subscribe(ids)
    stage.store.answer = () => assert.fail('a defect')
    await stage.happen(postAdded(1))
    assert.deepEqual(received, ['INTERNAL_SERVER_ERROR'])
    assert.equal(stage.reported.map(({ code }) => code).join(), 'fault')
  })

  it('after a revocation waits until the sockets of the revoked user are closed', async () => {
    const stage = new FanOutStage()
    const one = await stage.subscribe(ids)
    const closed = Promise.withResolvers<void>()
    const revoked: number[] = []
    stage.revoke = userId => {
      revoked.push(userId)
      return closed.promise
    }
    stage.log.add(postAdded(1))
    stage.log.add({ kind: 'user-revoked', userId: 7 })
    const reading = stage.happen(postAdded(2))
    await soon(() => one.received.length === 1)
    const other = await stage.resume(ids, stage.log.events[0] ?? assert.fail())
    for (let n = 0; n < 20; n++) await turn()
    assert.deepEqual([revoked, one.received, other.received], [[7], eventsOf(1), []])
    closed.resolve()
    await reading
    assert.deepEqual([one.received, other.received], [eventsOf(1, 2), eventsOf(2)])
  })

  it('to thousands of subscribers leaves time for other work in between', async () => {
    const stage = new FanOutStage()
    let count = 0
    const spin = () => {
      count++
      for (const end = performance.now() + 0.2; performance.now() < end; );
    }
    const slow = { ready: () => undefined, next: spin, end: spin }
    for (const subscription of [stage.subscription(ids), stage.subscription(comments, { post: '5' })])
      for (let n = 0; n < 500; n++) await stage.fanOut.subscribe(subscription, slow, 'a client')
    const counts = await atEachTurn(
      () => count,
      () => stage.happen(postAdded(1), postAdded(2)).then(() => waitUntil(() => count === 1_000)),
    )
    assert.ok(counts.filter(each => each < 500).length >= 3, `turns at ${counts}`)
    const ends = await atEachTurn(
      () => count,
      () => stage.happen(postDeleted(5)).then(() => waitUntil(() => count === 1_500)),
    )
    assert.ok(ends.length >= 3, `ends at ${ends}`)
  })

  it('to thousands of different subscriptions leaves time for other work in between, and all get the next one too', async () => {
    const stage = new FanOutStage({ groupsPerClient: 500 })
    const all: unknown[][] = []
    for (let n = 0; n < 300; n++) all.push((await stage.subscribe(`subscription { a${n}: postAdded { id } }`)).received)
    const counts = await atEachTurn(
      () => stage.delivered.length,
      () => stage.happen(postAdded(1), postAdded(2)),
    )
    for (const received of all) assert.match(JSON.stringify(received), /^\[{"a\d+":{"id":"1"}},{"a\d+":{"id":"2"}}\]$/)
    assert.ok(counts.length >= 3, `turns at ${counts}`)
  })
})

/** An internal class of `ws` that builds frames. Its types do not include it. */
const { Sender } = createRequire(import.meta.url)('ws')

/** The frame that `ws` sends for an event. */
function frameByWs(id: string, data: string): Buffer {
  const text = `{"id":${JSON.stringify(id)},"type":"next","payload":{"data":${data}}}`
  return Buffer.concat(Sender.frame(Buffer.from(text), { fin: true, opcode: 1 }))
}

// The length of a frame needs one, two or eight bytes more, with limits at 126 and 65,536 bytes.
it('the message of an event becomes the frames that ws makes, which count bytes and differ only in the id', () => {
  const shortest = frameByWs('1', '""').length - 2
  const lengths = [shortest, 125, 126, 127, 32_768, 65_535, 65_536, 65_537]
  const ascii = lengths.map(length => 'x'.repeat(length - shortest))
  const others = [1, 30, 50, 32_740, 32_750, 32_760, 40_000].map(size => 'é'.repeat(size))
  for (const text of [...ascii, ...others]) {
    const data = JSON.stringify(text)
    const message = new EventMessage(data)
    for (const id of ['1', '1', 'another id', '"\\é🎈', '1']) {
      const [frame, expected] = [message.frame(JSON.stringify(id)), frameByWs(id, data)]
      const what = `${text.length} × ${text[0]} to ${id}`
      // Not `deepEqual`, which would print two frames of 64 KiB byte by byte.
      assert.equal(frame.subarray(0, 14).toString('hex'), expected.subarray(0, 14).toString('hex'), what)
      assert.ok(frame.equals(expected), what)
    }
  }
})
