import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { DuetError, type Live, type Watcher } from '../../client/src/index.ts'
import { follow, reader } from '../../console/src/state/follow.ts'
import {
  type Comment,
  type Post,
  withComment,
  withComments,
  withFigures,
  withoutComment,
  withRead,
} from '../../console/src/state/lists.ts'

const at = (second: number) => `2026-01-01T00:00:0${second}.000Z`
const author = { id: '1', name: 'Ada' }

const post: Post = {
  ...{ id: '7', title: 'Title', content: 'Text', likes: 3, commentCount: 5, author },
  ...{ publishedAt: at(0), updatedAt: at(2), arrived: false, seen: 10 },
}

function comment(id: string, changes: Partial<Comment> = {}): Comment {
  const times = { createdAt: at(1), updatedAt: at(1) }
  return { id, text: `Text ${id}`, author, ...times, arrived: false, seen: 0, ...changes }
}

const texts = ({ comments }: Post) => comments?.map(({ text }) => text)

test('a late answer brings no older text, no smaller number of likes and no older number of comments', () => {
  const late = { ...post, title: 'Older', updatedAt: at(1), likes: 2, commentCount: 4 }
  assert.deepEqual(withRead(post, late, 9), post)
  const newer = { ...post, title: 'Newer', updatedAt: at(3), likes: 4, commentCount: 6 }
  assert.deepEqual(withRead(post, newer, 10), newer)
  assert.deepEqual(withRead(post, newer, 9), { ...newer, commentCount: 5 })
  const renamed = { ...author, name: 'Ada L.' } // a new name is no change of the post
  assert.equal(withRead(post, { ...post, author: renamed }, 10).author.name, 'Ada L.')
  assert.deepEqual(withFigures(post, { id: '7', likes: 1, commentCount: 2 }, 10), { ...post, commentCount: 2 })
})

test('the comments of a post are shown once, in order, each with its newest text', () => {
  const open = withComments(post, [comment('2'), comment('4')], [], false)
  const changed = withComment(withComment(open, comment('3')), comment('2', { text: 'New', updatedAt: at(3) }))
  assert.deepEqual(texts(changed), ['New', 'Text 3', 'Text 4'])
  assert.deepEqual(texts(withComment(changed, comment('2', { updatedAt: at(2) }))), ['New', 'Text 3', 'Text 4'])
  assert.equal(withComment(open, comment('4', { arrived: true })).comments?.[1]?.arrived, false, 'it was there before')
  const read = withComments(changed, [comment('2'), comment('5')], changed.comments ?? [], false)
  assert.deepEqual(texts(read), ['New', 'Text 3', 'Text 4', 'Text 5'])
})

test('the number of comments is that of those shown, once all of them are shown', () => {
  const open = withComments(post, [comment('2'), comment('4')], [], false)
  assert.equal(open.commentCount, 2)
  assert.equal(withComment(open, comment('5')).commentCount, 3)
  assert.equal(withoutComment(open, '2', false).commentCount, 1)
  const kept = withoutComment(open, '2', true)
  assert.deepEqual([kept.commentCount, kept.comments?.length], [1, 2])
  assert.equal(withFigures(open, { id: '7', likes: 3, commentCount: 9 }, 10).commentCount, 2)
  const some = withComments(post, [comment('2'), comment('4')], [], true)
  assert.equal(some.commentCount, 5)
  assert.equal(withFigures(some, { id: '7', likes: 3, commentCount: 9 }, 10).commentCount, 9)
})

test('a read serves all who ask at once, is repeated for those who ask while it runs, and tells why it failed', async () => {
  let reads = 0
  let next = Promise.withResolvers<void>()
  const settled = () => new Promise(resolve => setImmediate(resolve))
  const posts = reader(async () => {
    reads++
    await next.promise
  })
  for (let count = 0; count < 3; count++) posts.run()
  await settled()
  assert.deepEqual([reads, posts.busy.value], [1, true])
  for (let count = 0; count < 3; count++) posts.run()
  const first = next
  next = Promise.withResolvers()
  first.resolve()
  await settled()
  assert.deepEqual([reads, posts.busy.value], [2, true])
  posts.run()
  const second = next
  next = Promise.withResolvers()
  second.reject(new DuetError('rateLimited', 'Too many', { retryAfter: 5 }))
  await settled()
  assert.deepEqual([reads, posts.busy.value, posts.problem.value?.kind], [3, true, 'rate-limited'])
  next.reject(new DuetError('offline', 'No answer'))
  await settled()
  assert.deepEqual([reads, posts.busy.value, posts.problem.value?.kind], [3, false, 'offline'])
  next = Promise.withResolvers()
  next.resolve()
  posts.run()
  await settled()
  assert.deepEqual([reads, posts.problem.value], [4, undefined])
})

test('what is followed is read when events arrive or after a second, and followed again after an error, with longer and longer pauses', t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const begun: { watcher: Watcher<never>; closed: boolean }[] = []
  const live = {
    subscribe(_document: string, _variables: unknown, watcher: Watcher<never>) {
      const one = { watcher, closed: false }
      begun.push(one)
      return {
        position: undefined,
        close: () => {
          one.closed = true
        },
      }
    },
  } as unknown as Live
  let reads = 0
  let ends = 0
  const source = { document: 'subscription { postAdded { id } }', onData: () => {}, onEnd: () => ends++ }
  const start = () => follow(live, [source], () => reads++)
  const stop = start()
  begun[0]?.watcher.onReadAnew?.('start')
  mock.timers.tick(1000)
  assert.equal(reads, 1, 'it is not read twice')

  const failed = new DuetError('badInput', 'Too far behind', { code: 'SUBSCRIPTION_TOO_EXPENSIVE' })
  for (const pause of [2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]) {
    const before = begun.length
    begun.at(-1)?.watcher.onError?.(failed)
    mock.timers.tick(pause - 1)
    assert.equal(begun.length, before)
    mock.timers.tick(1)
    assert.equal(begun.length, before + 1)
  }
  begun.at(-1)?.watcher.onReadAnew?.('start')
  assert.equal(reads, 2)
  begun.at(-1)?.watcher.onError?.(failed)
  mock.timers.tick(2000)
  assert.equal(begun.length, 9, 'after a success the pauses are short again')
  begun.at(-1)?.watcher.onError?.(new DuetError('notFound', 'Post not found'))
  mock.timers.tick(60_000)
  assert.deepEqual([ends, begun.length], [1, 9], 'what is gone is not followed again')
  begun.at(-1)?.watcher.onEnd?.()
  assert.equal(ends, 2)
  stop()

  const leave = start()
  mock.timers.tick(1000)
  assert.equal(reads, 3, 'without a socket it is read all the same')
  begun.at(-1)?.watcher.onError?.(failed)
  leave()
  mock.timers.tick(60_000)
  assert.equal(begun.length, 10)
  const known = start()
  known()
  mock.timers.tick(60_000)
  assert.deepEqual([begun.at(-1)?.closed, reads], [true, 3])
})
