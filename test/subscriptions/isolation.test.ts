import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { unavailable } from '../../src/core/errors.ts'
import type { Selection } from '../../src/core/selection.ts'
import { groupId } from '../../src/graphql/subscriptions/groups.ts'
import { repeat } from '../support/graphql.ts'
import { waitUntil } from '../support/wait.ts'
import { FakeSubscriber, FanOutStage, postAdded } from './fakes.ts'

const ids = 'subscription { postAdded { id } }'
const titles = 'subscription { postAdded { title } }'

/** Subscriptions that differ from each other. */
const different = (n: number) => `subscription { postAdded { a${n}: id } }`

/** The key of the first selected field. */
function fieldIn({ fields: [wish] }: Selection): string | undefined {
  return wish?.kind === 'one' ? wish.fields[0]?.key : undefined
}

function eventsOf(...posts: readonly number[]) {
  return posts.map(id => ({ postAdded: { id: String(id) } }))
}

describe('A group whose reads', () => {
  it('hang delays no other group, and gets all events in order after they are answered', async () => {
    const stage = new FanOutStage()
    const stuck = await stage.subscribe(titles, {}, 'somebody')
    const other = await stage.subscribe(ids, {}, 'another')
    const { answer } = stage.store
    const { promise, resolve } = Promise.withResolvers<void>()
    stage.store.answer = async (id, selection) => {
      if (fieldIn(selection) === 'title') await promise
      return answer(id, selection)
    }
    for (let id = 1; id <= 20; id += 2) await stage.happen(postAdded(id), postAdded(id + 1))
    const all = eventsOf(...Array.from({ length: 20 }, (_, index) => index + 1))
    assert.deepEqual([other.received, stuck.received], [all, []])
    resolve()
    await waitUntil(() => stuck.received.length >= 20)
    await stage.happen(postAdded(21))
    assert.deepEqual(
      [other.received, stuck.received],
      [
        [...all, ...eventsOf(21)],
        [...all, ...eventsOf(21)],
      ],
    )
  })

  it('hang delays one event by a tenth of a second, and later events not at all', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const stage = new FanOutStage()
      await stage.subscribe(titles, {}, 'somebody')
      const other = await stage.subscribe(ids, {}, 'another')
      const { answer } = stage.store
      stage.store.answer = (id, selection) =>
        fieldIn(selection) === 'title' ? new Promise<never>(() => {}) : answer(id, selection)
      let delivered = 0
      const happen = async (post: number) => {
        stage.happen(postAdded(post)).then(() => delivered++)
        for (let n = 0; n < 20; n++) await turn()
      }
      await happen(1)
      mock.timers.tick(99)
      await turn()
      assert.deepEqual([other.received, delivered], [eventsOf(1), 0])
      mock.timers.tick(1)
      await turn()
      assert.equal(delivered, 1)
      for (let post = 2; post <= 10; post++) await happen(post)
      assert.deepEqual([other.received.length, delivered], [10, 10])
    } finally {
      mock.timers.reset()
    }
  })

  it('fail while the store answers others is ended with SUBSCRIPTION_TOO_EXPENSIVE, and others get every event once', async () => {
    const stage = new FanOutStage()
    const other = await stage.subscribe(ids)
    const failing = [await stage.subscribe(titles), await stage.subscribe(titles)]
    const another = await stage.subscribe('subscription { postAdded { likes } }')
    const { answer } = stage.store
    stage.store.answer = (id, selection) => {
      if (fieldIn(selection) === 'title') throw unavailable(new Error('Too late'))
      return answer(id, selection)
    }
    await stage.happen(postAdded(1), postAdded(2))
    await stage.happen(postAdded(3))
    for (const each of [other, another]) assert.deepEqual(each.received, eventsOf(1, 2, 3))
    for (const each of failing) assert.deepEqual(each.received, ['SUBSCRIPTION_TOO_EXPENSIVE'])
    assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [2, 2])
  })

  it('fail once gets all events, because the store may have been unavailable', async () => {
    const stage = new FanOutStage()
    const one = await stage.subscribe(ids)
    const { answer } = stage.store
    const failures = new Set([1, 2, 4])
    stage.store.answer = (id, selection) => {
      if (failures.delete(id)) throw unavailable(new Error('away'))
      return answer(id, selection)
    }
    await stage.happen(postAdded(1), postAdded(2), postAdded(3), postAdded(4), postAdded(5))
    await waitUntil(() => one.received.length >= 5 || stage.fanOut.groups === 0)
    assert.deepEqual(one.received, eventsOf(1, 2, 3, 4, 5))
  })

  it('exceed their time limit twice in a row is ended', async () => {
    const stage = new FanOutStage({ readMs: -1 })
    const one = await stage.subscribe(ids)
    await stage.happen(postAdded(1), postAdded(2), postAdded(3))
    assert.deepEqual(one.received, [...eventsOf(1), 'SUBSCRIPTION_TOO_EXPENSIVE'])
    assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [0, 0])
  })

  it('are late because of another group is not ended', async () => {
    const stage = new FanOutStage({ readMs: 200 })
    const innocent = await stage.subscribe(ids)
    const guilty = await stage.subscribe(titles)
    const { answer } = stage.store
    // As on SQLite: during a read, nothing else runs.
    stage.store.answer = (id, selection) => {
      const end = performance.now() + (fieldIn(selection) === 'title' ? 300 : 0)
      while (performance.now() < end);
      return answer(id, selection)
    }
    for (let id = 1; id <= 4; id++) await stage.happen(postAdded(id))
    const areDone = () => guilty.received.length >= 2 && innocent.received.length >= 4
    await waitUntil(() => areDone() || stage.fanOut.groups === 0)
    assert.deepEqual(
      [guilty.received, innocent.received],
      [[...eventsOf(1), 'SUBSCRIPTION_TOO_EXPENSIVE'], eventsOf(1, 2, 3, 4)],
    )
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
    for (const id of all) {
      await stage.happen(postAdded(id))
      if (id === 2_000) released.resolve()
    }
    await waitUntil(() => behind.received.length >= all.length || stage.fanOut.groups < 2)
    assert.deepEqual(behind.received, eventsOf(...all))
    assert.deepEqual(other.received, eventsOf(...all))
    await stage.happen(postAdded(2_501))
    await waitUntil(() => behind.received.length > all.length)
    assert.deepEqual(behind.received.slice(-1), eventsOf(2_501))
  })

  it('are in time gets an event once, although it read the event from the log before it was delivered', async () => {
    const stage = new FanOutStage()
    const behind = await stage.subscribe(titles)
    const { answer } = stage.store
    const released = Promise.withResolvers<void>()
    stage.store.answer = async (id, selection) => {
      await released.promise
      return answer(id, selection)
    }
    const all = Array.from({ length: 1_050 }, (_, n) => n + 1)
    for (const id of all) await stage.happen(postAdded(id))
    const early = stage.log.add(postAdded(1_051))
    released.resolve()
    await waitUntil(() => behind.received.length === 1_051)
    for await (const _ of stage.fanOut.deliver([early]));
    await stage.happen(postAdded(1_052))
    await waitUntil(() => behind.received.length >= 1_052)
    assert.deepEqual(behind.received, eventsOf(...all, 1_051, 1_052))
  })

  it('are in time is ended if it is a minute behind', async () => {
    let now = 1000
    const stage = new FanOutStage({ now: () => now })
    const behind = await stage.subscribe(titles)
    const { answer } = stage.store
    const released = Promise.withResolvers<void>()
    stage.store.answer = async (id, selection) => {
      await released.promise
      return answer(id, selection)
    }
    for (let id = 1; id <= 1_100; id++) await stage.happen(postAdded(id))
    now += 60_001
    released.resolve()
    await waitUntil(() => stage.fanOut.groups === 0)
    assert.equal(behind.received.at(-1), 'SUBSCRIPTION_TOO_EXPENSIVE')
    assert.equal(behind.received.length, 1_001)
  })

  it('are never answered is ended if it is a thousand events behind the feed', async t => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const stage = new FanOutStage({ readMs: 1_000 })
    const stuck = await stage.subscribe(titles)
    const other = await stage.subscribe(ids)
    const { answer } = stage.store
    stage.store.answer = (id, selection) =>
      fieldIn(selection) === 'title' ? new Promise<never>(() => {}) : answer(id, selection)
    const posts = Array.from({ length: 1_000 }, (_, index) => postAdded(index + 1))
    await stage.happen(...posts)
    assert.deepEqual([other.received.length, stuck.received], [1_000, []])
    now += 2_001
    await stage.happen(postAdded(1_001))
    assert.deepEqual([other.received.length, stuck.received], [1_001, ['SUBSCRIPTION_TOO_EXPENSIVE']])
  })

  it('are many runs a few reads at a time, and all subscribers get their events', async () => {
    const stage = new FanOutStage({ readsAtOnce: 4 })
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, n) => stage.subscribe(different(n), {}, `client ${n}`)),
    )
    const { answer } = stage.store
    let reading = 0
    let most = 0
    stage.store.answer = async (id, selection) => {
      most = Math.max(most, ++reading)
      await turn()
      reading--
      return answer(id, selection)
    }
    await stage.happen(postAdded(1), postAdded(2), postAdded(3))
    await waitUntil(() => all.every(each => each.received.length === 3))
    assert.equal(most, 4)
    for (const each of all) assert.deepEqual(each.received, eventsOf(1, 2, 3))
  })
})

describe('A client with many groups', () => {
  /** The keys of the fields that are read for one event, in the order of the reads. */
  const readsFor = async (stage: FanOutStage, post: number): Promise<readonly (string | undefined)[]> => {
    const { answer } = stage.store
    const fields: (string | undefined)[] = []
    stage.store.answer = async (id, selection) => {
      fields.push(fieldIn(selection))
      await turn()
      return answer(id, selection)
    }
    await stage.happen(postAdded(post))
    await waitUntil(() => fields.length === stage.fanOut.groups)
    stage.store.answer = answer
    return fields
  }

  for (const readsAtOnce of [1, 4]) {
    it(`delays others by one or two reads, with ${readsAtOnce} at once`, async () => {
      const stage = new FanOutStage({ readsAtOnce })
      for (let n = 0; n < 100; n++) await stage.subscribe(different(n), {}, 'greedy')
      await stage.subscribe(ids, {}, 'modest')
      await stage.subscribe(titles, {}, 'another')
      const fields = await readsFor(stage, 1)
      const places = ['id', 'title'].map(wish => fields.indexOf(wish))
      assert.ok(
        places.every(place => place >= 0 && place <= 4),
        `read at ${places}`,
      )
    })
  }

  it('uses at most half of the concurrent reads, so that others do not wait for hanging reads', async () => {
    const stage = new FanOutStage({ readsAtOnce: 4 })
    for (let n = 0; n < 100; n++) await stage.subscribe(different(n), {}, 'greedy')
    const modest = await stage.subscribe(ids, {}, 'modest')
    const { answer } = stage.store
    stage.store.answer = (id, selection) =>
      fieldIn(selection) === 'id' ? answer(id, selection) : new Promise<never>(() => {})
    await stage.happen(postAdded(1), postAdded(2))
    assert.deepEqual(modest.received, eventsOf(1, 2))
    assert.equal(stage.store.reads.length, 2 + 2)
  })

  it('does not slow down a group that it shares with a client with few groups', async () => {
    const stage = new FanOutStage({ readsAtOnce: 1 })
    for (let n = 0; n < 100; n++) await stage.subscribe(different(n), {}, 'greedy')
    await stage.subscribe(ids, {}, 'greedy')
    const modest = await stage.subscribe(ids, {}, 'modest')
    assert.ok((await readsFor(stage, 1)).indexOf('id') <= 2)
    // The same holds when that client leaves, and another client shares the group with the greedy one.
    await stage.subscribe(ids, {}, 'another')
    modest.leave()
    await stage.subscribe(titles, {}, 'greedy')
    await stage.subscribe(ids, {}, 'a third')
    assert.ok((await readsFor(stage, 2)).indexOf('id') <= 2)
  })

  it('has a limit of groups over all its sockets, and does not count a group twice', async () => {
    const stage = new FanOutStage({ groupsPerClient: 3 })
    const own = []
    for (let n = 0; n < 3; n++) own.push(await stage.subscribe(different(n), {}, 'greedy'))
    await stage.subscribe(different(3), {}, 'modest')
    await stage.subscribe(different(0), {}, 'greedy')
    // The limit is the same for groups that already have other members.
    for (const n of [3, 4]) {
      await assert.rejects(stage.subscribe(different(n), {}, 'greedy'), {
        code: 'SUBSCRIPTION_LIMIT_EXCEEDED',
        message: 'At most 3 different subscriptions of one client at a time.',
      })
    }
    assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [4, 5])
    own[0]?.leave() // the client has another member in that group
    await assert.rejects(stage.subscribe(different(4), {}, 'greedy'), { code: 'SUBSCRIPTION_LIMIT_EXCEEDED' })
    own[1]?.leave()
    await assert.doesNotReject(stage.subscribe(different(4), {}, 'greedy'))
    assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [4, 4])
  })

  it('and all others together have a limit of groups, but may join existing groups', async () => {
    const stage = new FanOutStage({ groups: 3 })
    for (let n = 0; n < 3; n++) await stage.subscribe(different(n), {}, `client ${n}`)
    await stage.subscribe(different(1), {}, 'another')
    await assert.rejects(stage.subscribe(different(3), {}, 'another'), {
      code: 'SUBSCRIPTION_LIMIT_EXCEEDED',
      message: 'There are too many different subscriptions. Try again later.',
    })
    assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [3, 4])
  })
})

describe('Sending an event', () => {
  it('ends and reports a subscriber that throws, and all others get the event once', async () => {
    const stage = new FanOutStage()
    const before = await stage.subscribe(ids)
    const failing = new FakeSubscriber()
    const broken = {
      ready: () => undefined,
      next: () => assert.fail('a defect'),
      fail: failing.fail,
      complete: failing.complete,
    }
    await stage.fanOut.subscribe(stage.subscription(ids), broken, 'a client')
    const hopeless = { ...broken, fail: () => assert.fail('another defect') }
    await stage.fanOut.subscribe(stage.subscription(ids), hopeless, 'a client')
    const after = await stage.subscribe(ids)
    await stage.happen(postAdded(1), postAdded(2))
    for (const each of [before, after]) assert.deepEqual(each.received, eventsOf(1, 2))
    assert.deepEqual(failing.received, ['INTERNAL_SERVER_ERROR'])
    assert.equal(stage.fanOut.subscriptions, 2)
    assert.deepEqual(
      stage.reported.map(({ cause }) => (cause as Error).message),
      ['a defect', 'a defect', 'another defect'],
    )
  })

  it('reports an internal error of a group', async () => {
    const stage = new FanOutStage()
    await stage.subscribe(ids)
    stage.store.answer = () => assert.fail('a defect')
    await stage.happen(postAdded(1))
    assert.deepEqual(
      stage.reported.map(({ code }) => code),
      ['fault'],
    )
  })

  it('after a revocation waits until the sockets of the revoked user are closed', async () => {
    const stage = new FanOutStage()
    const one = await stage.subscribe(ids)
    const events = [postAdded(1), { kind: 'user-revoked', userId: 1 } as const, postAdded(2)]
    const seen: unknown[] = []
    for await (const { kind } of stage.fanOut.deliver(events.map(each => stage.log.add(each)))) {
      for (let n = 0; n < 5; n++) await turn()
      seen.push([kind, one.received.length])
    }
    assert.deepEqual(seen, [
      ['post-added', 1],
      ['user-revoked', 1],
      ['post-added', 2],
    ])
  })

  it('to thousands of subscribers leaves time for other work in between', async () => {
    const stage = new FanOutStage()
    let count = 0
    const spin = () => {
      count++
      for (const end = performance.now() + 0.2; performance.now() < end; );
    }
    const slow = { ready: () => undefined, next: spin, fail() {}, complete() {} }
    for (let n = 0; n < 500; n++) await stage.fanOut.subscribe(stage.subscription(ids), slow, 'a client')
    const toldAtTurns: number[] = []
    let isOver = false
    const watching = (async () => {
      while (!isOver) {
        await turn()
        toldAtTurns.push(count)
      }
    })()
    await stage.happen(postAdded(1))
    await waitUntil(() => count === 500)
    isOver = true
    await watching
    assert.ok(new Set(toldAtTurns.filter(each => each > 0 && each < 500)).size >= 3, `turns at ${toldAtTurns}`)
  })

  it('the id of a group has a fixed length, and differs for every selection', () => {
    const stage = new FanOutStage()
    const long = `subscription { postAdded { ${repeat(300, n => `${'x'.repeat(100)}${n}: id`)} } }`
    const groupIds = [ids, titles, long].map(text => groupId(stage.subscription(text), false))
    assert.equal(new Set(groupIds).size, 3)
    for (const id of groupIds) assert.ok(id.length < 50, id)
  })
})
