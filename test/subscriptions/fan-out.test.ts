import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { AppError, unavailable } from '../../src/core/errors.ts'
import { commentAdded, FakeSubscriber, FanOutStage, postAdded, postDeleted, soon } from './fakes.ts'

const ids = 'subscription { postAdded { id } }'
const titles = 'subscription { postAdded { title } }'
const comments = 'subscription ($post: ID!) { commentAdded(postId: $post) { id } }'

describe('FanOut', () => {
  it('reads an event once for all subscribers with the same selection, in every notation', async () => {
    const stage = new FanOutStage()
    const all = [
      await stage.subscribe(ids),
      await stage.subscribe(ids),
      await stage.subscribe(
        'subscription Named($unused: Boolean = true) { ...F } fragment F on Subscription { postAdded { id @include(if: $unused) } }',
      ),
    ]
    assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [1, 3])
    await stage.happen(postAdded(7), postAdded(8))
    assert.deepEqual(stage.store.reads, [[7], [8]])
    for (const { received } of all) assert.deepEqual(received, [{ postAdded: { id: '7' } }, { postAdded: { id: '8' } }])
  })

  it('reads it again for another selection, another alias and other variables', async () => {
    const stage = new FanOutStage()
    const latest = 'subscription ($n: Int) { postAdded { author { posts(limit: $n) { id } } } }'
    await stage.subscribe(ids)
    await stage.subscribe(titles)
    await stage.subscribe('subscription { added: postAdded { id } }')
    await stage.subscribe(latest, { n: 1 })
    await stage.subscribe(latest, { n: 2 })
    await stage.subscribe(latest, { n: 2 })
    assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [5, 6])
    await stage.happen(postAdded(7))
    assert.equal(stage.store.reads.length, 5)
  })

  it('reads nothing if there are no subscribers', async () => {
    const stage = new FanOutStage()
    const { received } = await stage.subscribe(comments, { post: '5' })
    stage.store.reads.length = 0 // the subscription itself has read the post
    await stage.happen(postAdded(7), commentAdded(6, 1), { kind: 'user-revoked', userId: 5 }, postDeleted(6))
    assert.deepEqual([stage.store.reads, received, stage.delivered], [[], [], []])
  })

  it('removes a group with its last member, and leaving twice changes nothing', async () => {
    const stage = new FanOutStage()
    const first = await stage.subscribe(ids)
    const second = await stage.subscribe(ids)
    const other = await stage.subscribe(comments, { post: '5' })
    first.leave()
    first.leave()
    assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [2, 2])
    second.leave()
    other.leave()
    assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [0, 0])
    stage.store.reads.length = 0
    await stage.happen(postAdded(7), commentAdded(5, 1))
    assert.deepEqual([first.received, second.received, other.received, stage.store.reads], [[], [], [], []])
    const again = await stage.subscribe(ids)
    await stage.happen(postAdded(8))
    assert.deepEqual(again.received, [{ postAdded: { id: '8' } }])
  })

  it('an event before a subscription is not sent, even if it is delivered later', async () => {
    const stage = new FanOutStage()
    stage.log.add(postAdded(1))
    const { received } = await stage.subscribe(ids)
    await stage.happen(postAdded(2))
    assert.deepEqual(received, [{ postAdded: { id: '2' } }])
    assert.deepEqual(stage.delivered, [[1, 0.25]])
  })

  it('events that are delivered while a subscription starts are sent afterwards, once and in order, unless they happened before', async () => {
    const stage = new FanOutStage()
    const other = await stage.subscribe(ids)
    const { promise, resolve } = Promise.withResolvers<void>()
    stage.log.add(postAdded(1))
    stage.log.held = promise
    const subscriber = new FakeSubscriber()
    const beginning = stage.fanOut.subscribe(stage.subscription(ids), subscriber, 'a client')
    await stage.happen(postAdded(2), postAdded(3))
    assert.deepEqual(subscriber.received, [])
    assert.equal(other.received.length, 3)
    resolve()
    await beginning
    await stage.happen(postAdded(4))
    assert.deepEqual(
      subscriber.received,
      [2, 3, 4].map(id => ({ postAdded: { id: String(id) } })),
    )
  })

  it('sends events in order, whatever the timing of the store', async () => {
    const stage = new FanOutStage()
    const { received } = await stage.subscribe(ids)
    const count = 20
    const gates = new Map(Array.from({ length: count }, (_, index) => [index + 1, Promise.withResolvers<void>()]))
    stage.store.answer = async id => {
      await gates.get(id)?.promise
      return `{"postAdded":{"id":"${id}"}}`
    }
    const delivery = stage.happen(...[...gates.keys()].map(postAdded))
    for (const id of [...gates.keys()].reverse()) {
      gates.get(id)?.resolve()
      await turn()
    }
    await delivery
    assert.deepEqual(
      received,
      [...gates.keys()].map(id => ({ postAdded: { id: String(id) } })),
    )
  })

  it('a post that is deleted before it is sent is skipped and counted, and the next is sent', async () => {
    const stage = new FanOutStage()
    const one = await stage.subscribe(ids)
    const other = await stage.subscribe(titles)
    const { promise, resolve } = Promise.withResolvers<void>()
    let isGone = false
    stage.store.answer = async (id, { fields }) => {
      await promise
      return isGone && id === 1 ? `{"${fields[0]?.key}":null}` : `{"postAdded":{"id":"${id}"}}`
    }
    const delivery = stage.happen(postAdded(1), postAdded(2))
    isGone = true
    resolve()
    await delivery
    for (const { received } of [one, other]) assert.deepEqual(received, [{ postAdded: { id: '2' } }])
    assert.equal(stage.skipped, 2) // once per group
    assert.deepEqual(stage.delivered, [
      [1, 0.25],
      [1, 0.25],
    ])
  })

  it('during an outage of the store nothing is sent, and afterwards all subscribers get all events once and in order', async () => {
    const stage = new FanOutStage()
    const all = [await stage.subscribe(ids), await stage.subscribe(titles)]
    const { answer } = stage.store
    // The store becomes unavailable between the reads of the two groups, so the second read fails.
    stage.store.answer = (id, selection) => {
      if (stage.log.isAway) throw unavailable(new Error('away'))
      stage.log.isAway = id === 2
      return answer(id, selection)
    }
    await stage.add(postAdded(1), postAdded(2), postAdded(3))
    await soon(() => stage.log.isAway)
    stage.log.isAway = false
    stage.store.answer = answer
    await stage.happen(postAdded(4))
    for (const { received } of all)
      assert.deepEqual(
        received,
        [1, 2, 3, 4].map(id => ({ postAdded: { id: String(id) } })),
      )
    assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [2, 2])
  })

  it('an event that cannot be sent to one group ends its subscriptions, and no others', async () => {
    const stage = new FanOutStage()
    const one = await stage.subscribe(ids)
    const large = await stage.subscribe(titles)
    const broken = await stage.subscribe('subscription { postAdded { content } }')
    const answer = stage.store.answer
    stage.store.answer = (id, selection) => {
      const [wish] = selection.fields
      const [inner] = wish?.kind === 'one' ? wish.fields : []
      if (inner?.key === 'title') throw new AppError('answer-too-large', 'The answer is too large.')
      if (inner?.key === 'content') throw new Error('a defect')
      return answer(id, selection)
    }
    await stage.happen(postAdded(1), postAdded(2))
    assert.equal(one.received.length, 2)
    assert.deepEqual(large.received, ['RESPONSE_TOO_LARGE'])
    assert.deepEqual(broken.received, ['INTERNAL_SERVER_ERROR'])
    assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [1, 1])
  })

  it('the deletion of a post ends the subscriptions to its comments, and no others', async () => {
    const stage = new FanOutStage()
    const subscribers = await Promise.all(['5', '5', '6'].map(post => stage.subscribe(comments, { post })))
    const posts = await stage.subscribe(ids)
    await stage.happen(commentAdded(5, 1), postDeleted(5), commentAdded(6, 2))
    assert.deepEqual(
      subscribers.map(({ received }) => received),
      [
        [{ commentAdded: { id: '1' } }, 'complete'],
        [{ commentAdded: { id: '1' } }, 'complete'],
        [{ commentAdded: { id: '2' } }],
      ],
    )
    assert.deepEqual(posts.received, [])
    assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [2, 2])
  })

  it('a subscription to the comments of an absent post is refused, and no group is left', async () => {
    const stage = new FanOutStage()
    stage.store.hasPost = async () => false
    for (const post of ['5', 'abc', '0', '01']) {
      await assert.rejects(stage.subscribe(comments, { post }), { code: 'NOT_FOUND', message: 'Post not found' })
    }
    assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [0, 0])
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
      assert.deepEqual([stage.fanOut.groups, stage.fanOut.subscriptions], [0, 0])
    }
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
        { ready: () => undefined, next, fail() {}, complete() {} },
        'a client',
      )
      if (name !== 'c') leaving.push(leave)
    }
    await stage.happen(postAdded(1), postAdded(2))
    assert.deepEqual(received, ['a', 'c', 'c'])
    assert.equal(stage.fanOut.subscriptions, 1)
  })
})
