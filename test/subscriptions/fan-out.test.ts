import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { commentAdded, FakeSubscriber, FanOutStage, postAdded, postDeleted } from './fakes.ts'

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

  it('a subscription that starts while its post is deleted ends, in every order of the reads', async () => {
    for (const isDeletedFirst of [true, false]) {
      const stage = new FanOutStage()
      const deletion = Promise.withResolvers<void>()
      // The end of the log is read before the deletion or after it, and then there is no such post.
      if (isDeletedFirst) await stage.happen(postDeleted(5))
      stage.store.hasPost = async () => {
        await deletion.promise
        return false
      }
      const subscriber = new FakeSubscriber()
      const beginning = stage.fanOut.subscribe(stage.subscription(comments, { post: '5' }), subscriber, 'a client')
      await turn()
      if (!isDeletedFirst) await stage.happen(postDeleted(5))
      deletion.resolve()
      if (isDeletedFirst) await assert.rejects(beginning, { code: 'NOT_FOUND' })
      else await beginning
      assert.deepEqual(subscriber.received, isDeletedFirst ? [] : ['complete'])
      assert.deepEqual([stage.fanOut.groups.size, stage.fanOut.groups.members], [0, 0])
    }
  })

  it('tells since when the oldest of the events waits that its groups are at', async () => {
    const stage = new FanOutStage()
    const reads = Promise.withResolvers<string>()
    await stage.subscribe(ids)
    await stage.subscribe(comments, { post: '5' })
    await stage.happen()
    stage.store.answer = () => reads.promise
    await stage.add(Object.assign(postAdded(1), { at: 2000 }), Object.assign(commentAdded(5, 1), { at: 3000 }))
    assert.equal(stage.fanOut.undeliveredSince, 2000)
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
