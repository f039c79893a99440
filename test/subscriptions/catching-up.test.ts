import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { unavailable } from '../../src/core/errors.ts'
import { placeToText } from '../../src/core/events.ts'
import { runs } from '../support/form.ts'
import { commentAdded, FakeSubscriber, FanOutStage, postAdded, soon } from './fakes.ts'

const posts = 'subscription { postAdded { id } }'
const comments = 'subscription ($postId: ID!) { commentAdded(postId: $postId) { id } }'

function idIn(event: unknown): number {
  const [subject] = Object.values(event as Record<string, { id: string }>)
  return Number(subject?.id)
}

const idsIn = (received: readonly unknown[]) => received.map(event => (typeof event === 'string' ? event : idIn(event)))

/** Numbers from the first one to the last one. */
const numbers = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, index) => first + index)

/** A stage on which these posts were added, and the feed has read them. */
async function stageAfter(count: number): Promise<FanOutStage> {
  const stage = new FanOutStage()
  await stage.add(...numbers(1, count).map(postAdded))
  return stage
}

/** Lets other work happen while the store reads. */
function slowDown({ store }: FanOutStage): void {
  const { answer } = store
  store.answer = async (id, selection) => {
    await turn()
    return answer(id, selection)
  }
}

const eventAt = (stage: FanOutStage, position: number) =>
  stage.log.events[position - 1] ?? assert.fail(`no event at ${position}`)

const topics = [
  { query: posts, variables: {}, add: (id: number) => postAdded(id) },
  { query: comments, variables: { postId: '7' }, add: (id: number) => commentAdded(7, id) },
]
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('add'), count: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('add'), count: fc.integer({ min: 600, max: 1_200 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('show'), count: fc.integer({ min: 1, max: 40 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('join', 'join slowly'), count: fc.nat(3) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('resume', 'resume slowly'), count: fc.nat(60) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave'), count: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fail'), count: fc.integer({ min: 1, max: 2 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait'), count: fc.integer({ min: 1, max: 6 }) }) },
)

it('subscribers that join, read and leave: get every event of their topic after their position, once and in order, with any timing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async steps => {
      const stage = new FanOutStage()
      stage.log.shown = 0
      const { answer } = stage.store
      const { ofTopic } = stage.log
      let failures = 0
      const slowly = async <Value>(read: () => Promise<Value> | Value) => {
        await turn()
        if (failures-- > 0) throw unavailable(new Error('away'))
        const value = await read()
        await turn()
        return value
      }
      stage.store.answer = (id, selection) => slowly(() => answer(id, selection))
      stage.log.ofTopic = (...asked) => slowly(() => ofTopic.apply(stage.log, asked))
      const members: { from: number; topic: number; subscriber: FakeSubscriber; leave: () => void }[] = []
      const left = new Set<FakeSubscriber>()
      const subscribing: Promise<unknown>[] = []
      /** Not awaited, so that everything may happen while the subscription starts. */
      const join = (count: number, isSlow: boolean, after: number | undefined) => {
        const topic = count % 2
        const { query, variables } = topics[topic] ?? assert.fail()
        const subscriber = new FakeSubscriber()
        if (isSlow) subscriber.onNext = () => void turn().then(subscriber.stopReading())
        const resume =
          after === undefined ? { positions: true } : { positions: true, after: placeToText(eventAt(stage, after)) }
        subscribing.push(
          stage.fanOut.joins.end().then(async end => {
            const subscription = stage.subscription(query, variables)
            const leave = await stage.fanOut.subscribe(subscription, subscriber, `client ${count % 3}`, resume, end)
            members.push({ from: after ?? end.position, topic, subscriber, leave })
          }),
        )
      }
      for (const { kind, count } of steps) {
        const { length } = stage.log.events
        if (kind === 'add')
          for (let n = 0; n < count; n++) stage.log.add(topics[(length + n) % 2]?.add(length + n + 1) ?? assert.fail())
        else if (kind === 'show') {
          stage.log.shown = Math.min(length, stage.log.shown + count)
          stage.feed.look()
        } else if (kind.startsWith('join')) join(count, kind.endsWith('slowly'), undefined)
        else if (kind.startsWith('resume')) {
          if (length > 0) join(count, kind.endsWith('slowly'), Math.max(1, length - ((count * count) % length)))
        } else if (kind === 'leave') {
          const member = members[count % (members.length || 1)]
          member?.leave()
          if (member !== undefined) left.add(member.subscriber)
        } else if (kind === 'fail') failures = count
        else for (let n = 0; n < count; n++) await turn()
      }
      await Promise.all(subscribing)
      stage.log.shown = Number.POSITIVE_INFINITY
      await stage.read()
      for (const { from, topic, subscriber } of members) {
        const all = numbers(from + 1, stage.log.events.length).filter(id => (id - 1) % 2 === topic)
        if (!left.has(subscriber)) await soon(() => subscriber.received.length >= all.length).catch(() => {})
        const received = idsIn(subscriber.received)
        assert.deepEqual(received, left.has(subscriber) ? all.slice(0, received.length) : all)
      }
      for (const { leave } of members) leave()
      const { groups } = stage.fanOut
      assert.deepEqual([groups.size, groups.members, ...groups.listeningTo(['post-added', 'comment-added 7'])], [0, 0])
    }),
    { numRuns: runs(15, 1_000) },
  )
})

describe('A subscriber that begins at an earlier position', () => {
  it('shares the reads of others that catch up with the same events, thousands after a restart', async () => {
    const stage = new FanOutStage()
    await stage.add(...numbers(1, 20).map(id => commentAdded(7, id)), ...numbers(1, 1_100).map(postAdded))
    slowDown(stage)
    const resume = (at = 1000) => stage.resume(comments, { ...eventAt(stage, 1), at }, { postId: '7' })
    const all = Promise.all(Array.from({ length: 200 }, () => resume()))
    await assert.rejects(resume(5), { code: 'POSITION_UNKNOWN' }, 'this one is not the same')
    const same = await all
    await soon(() => same.every(({ received }) => received.length === 19))
    for (const { received } of same) assert.deepEqual(idsIn(received), numbers(2, 20))
    // By themselves they would need 200 for each event, and a page each.
    assert.ok(stage.store.reads.length < 20 * 19 && stage.log.pages < 100)
  })

  it('catches up by itself, and then shares the reads of the live group', async () => {
    const stage = await stageAfter(10)
    const live = await stage.subscribe(posts, {}, 'another', { positions: true })
    const same = await Promise.all([1, 2, 3].map(() => stage.resume(posts, eventAt(stage, 4))))
    await soon(() => same.every(({ received }) => received.length === 6))
    assert.deepEqual([stage.store.reads.length, stage.fanOut.groups.size, stage.fanOut.groups.members], [18, 1, 4])
    await stage.happen(postAdded(11), Object.assign(postAdded(12), { at: 2000 })) // by a clock that is ahead
    for (const { received } of same) assert.deepEqual(idsIn(received), numbers(5, 12))
    assert.deepEqual(idsIn(live.received), [11, 12])
    assert.deepEqual([stage.store.reads.length, stage.replayed], [20, 18])
    assert.deepEqual(stage.delivered, [
      [4, 0.25],
      [4, 0],
    ])
    assert.deepEqual(live.subscriber.positions, stage.log.events.slice(10).map(placeToText))
    assert.deepEqual(same[0]?.subscriber.positions, stage.log.events.slice(4).map(placeToText))
  })

  it('misses no event and gets none twice when it overtakes the live group and then joins it', async () => {
    const stage = await stageAfter(2)
    const live = await stage.subscribe(posts, {}, 'another', { positions: true })
    const held = Promise.withResolvers<void>()
    const { answer } = stage.store
    stage.store.answer = async (id, selection) => {
      stage.store.answer = answer
      await held.promise
      return answer(id, selection)
    }
    await stage.add(postAdded(3)) // which the live group reads slowly
    const faster = await stage.resume(posts, eventAt(stage, 1))
    await soon(() => faster.received.length === 2)
    await turn()
    held.resolve()
    await stage.happen(postAdded(4))
    assert.deepEqual([idsIn(faster.received), idsIn(live.received)], [numbers(2, 4), numbers(3, 4)])
  })

  it('gets an event that happens while it waits for a page without events of its topic, as another does that asks for this page later', async () => {
    const stage = new FanOutStage({ readsAtOnce: 1 })
    await stage.add(postAdded(1), ...numbers(2, 1_500).map(n => commentAdded(1, n)))
    const { ofTopic } = stage.log
    const held = Promise.withResolvers<void>()
    stage.log.ofTopic = (...asked) => held.promise.then(() => ofTopic.apply(stage.log, asked))
    await stage.resume(comments, eventAt(stage, 1), { postId: '1' }) // the only read at a time
    const early = await stage.resume(posts, eventAt(stage, 1))
    await stage.add(postAdded(1_501))
    const both = [early, await stage.resume(posts, eventAt(stage, 1))]
    held.resolve()
    await stage.happen(postAdded(1_502))
    await soon(() => both.every(({ received }) => idsIn(received).includes(1_502)))
    for (const { received } of both) assert.deepEqual(idsIn(received), [1_501, 1_502])
  })

  it('is ended with POSITION_UNKNOWN if events were deleted before it read them', async () => {
    const stage = await stageAfter(3_000)
    stage.store.answer = id => {
      if (id === 50) stage.log.purged = 1_500
      return `{"postAdded":{"id":"${id}"}}`
    }
    const { received } = await stage.resume(posts, eventAt(stage, 1))
    await soon(() => stage.fanOut.groups.members === 0)
    assert.deepEqual(idsIn(received), [...numbers(2, 501), 'POSITION_UNKNOWN'])
    await assert.rejects(stage.resume(posts, eventAt(stage, 1)), { code: 'POSITION_UNKNOWN' })
  })

  it('gets no more when it has left', async () => {
    const stage = await stageAfter(500)
    slowDown(stage)
    const { received, leave } = await stage.resume(posts, eventAt(stage, 1))
    await soon(() => received.length >= 10)
    leave()
    const { length } = received
    const { length: reads } = stage.store.reads
    for (let n = 0; n < 50; n++) await turn()
    assert.ok(received.length === length && stage.store.reads.length <= reads + 1)
    assert.deepEqual([stage.fanOut.groups.size, stage.fanOut.groups.members], [0, 0])
  })

  it('gets no more until it reads, and then everything', async () => {
    const stage = await stageAfter(10)
    const subscriber = new FakeSubscriber()
    let read = () => {}
    subscriber.onNext = () => {
      subscriber.onNext = () => {}
      read = subscriber.stopReading()
    }
    const after = placeToText(eventAt(stage, 1))
    await stage.fanOut.subscribe(stage.subscription(posts), subscriber, 'c', { positions: true, after })
    await soon(() => subscriber.received.length === 1)
    for (let n = 0; n < 100; n++) await turn()
    assert.deepEqual([idsIn(subscriber.received), stage.store.reads.length], [[2], 1])
    read()
    await soon(() => subscriber.received.length >= 9)
    assert.deepEqual(idsIn(subscriber.received), numbers(2, 10))
  })
})
